import type { Command } from 'commander'
import type { Environment } from '../provider/event.js'
import { type DaemonOptions, environmentOption, withDaemonOption, withSharedOptions } from './command.js'
import { commandGroup } from './command-groups.js'

export interface SyncOptions extends DaemonOptions {
  readonly environment?: Environment
}

/** One of the commands about what follows access. */
export function syncCommand(program: Command, name: string, ...examples: readonly string[]): Command {
  const group = commandGroup(program, 'sync')
  return withDaemonOption(withSharedOptions(group.command(name), ...examples.map((one) => `sync ${one}`)))
}

/** `--environment`, which leaves out what is of the other one. */
export function withEnvironment(command: Command): Command {
  return command.addOption(environmentOption('only this environment (default: both)'))
}

/** `?environment=live&state=parked`, of what is given. */
export function queryText(parameters: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, value)
  return query.size === 0 ? '' : `?${query}`
}
