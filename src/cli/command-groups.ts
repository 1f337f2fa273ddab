import type { Command } from 'commander'
import { withExamples } from './command.js'

/** The commands that hold others, each with one of those as an example. */
const GROUPS = {
  events: { description: 'the stored events', example: 'events list --disposition held' },
  keys: {
    description: 'the API keys in the config file',
    example: 'keys create --name app --scope read --environment live',
  },
  config: { description: 'the config file', example: 'config check' },
  policy: { description: 'what grants and takes back access', example: 'policy diff' },
  sync: {
    description: 'roles and groups that follow access, and the outbound webhook',
    example: 'sync status --state parked',
  },
} as const

/** A command that holds others; made by whichever of them comes first. */
export function commandGroup(program: Command, name: keyof typeof GROUPS): Command {
  const existing = program.commands.find((command) => command.name() === name)
  if (existing !== undefined) return existing
  const { description, example } = GROUPS[name]
  return withExamples(program.command(name).description(description), example)
}
