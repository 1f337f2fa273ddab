import type { Readable } from 'node:stream'
import { Command } from 'commander'
import { packageVersion } from '../package-file.js'
import { accessCommands } from './access.js'
import { actsCommands } from './acts.js'
import { backfillCommand } from './backfill.js'
import type { RegisterCommand } from './command.js'
import { configCommands } from './config.js'
import { consoleCommand } from './console.js'
import type { CliContext } from './context.js'
import { controlCommands } from './control.js'
import { changesCommand } from './customers/changes.js'
import { databaseCommands } from './database.js'
import { doctorCommand } from './doctor.js'
import { endpointsCommands } from './endpoints/commands.js'
import { eventsCommands } from './events.js'
import { reportFailure } from './failure.js'
import { importCommand } from './import.js'
import { messageCommands } from './messages.js'
import { recomputeCommands } from './recompute.js'
import { sandboxCommands } from './sandbox/commands.js'
import { sendCommand } from './send.js'
import { syncCommands } from './sync.js'
import { withVisibleText } from './text.js'
import { triggerCommand } from './trigger.js'

/** Runs one command line (without the program's own name) and resolves to its exit code; never rejects. */
export async function runCli(
  args: readonly string[],
  given: CliContext,
  commands: readonly RegisterCommand[],
): Promise<number> {
  const isJson = args.includes('--json')
  const context = isJson ? given : withVisibleText(given)
  const program = new Command('latchkey')
    .description('Turns signed payment webhooks into access.')
    .version(packageVersion())
    .exitOverride()
    // Errors are reported in one place, with an exit code and, with `--json`, as JSON.
    .configureOutput({ writeOut: context.out, writeErr: context.err, outputError: () => {} })
  for (const register of commands) register(program, context)
  try {
    await program.parseAsync(withoutHelpIfUnknown(program, args), { from: 'user' })
    return 0
  } catch (error) {
    return reportFailure(error, context, isJson)
  }
}

/** Asked for help with a command that it does not know, Commander would show the whole help; without, it refuses. */
function withoutHelpIfUnknown(program: Command, args: readonly string[]): readonly string[] {
  const words = args.filter((word) => !['help', '--help', '-h'].includes(word))
  return isUnknown(program, words) ? words : args
}

function isUnknown({ commands }: Command, [name, ...rest]: readonly string[]): boolean {
  if (commands.length === 0 || name === undefined || name.startsWith('-')) return false
  const next = commands.find((one) => one.name() === name)
  return next === undefined || isUnknown(next, rest)
}

/**
 * Every command that there is, in the order in which the help lists them.
 * @param openInput what is piped in, for a command that reads it
 */
export function createCommands({ openInput }: { readonly openInput: () => Readable }) {
  return [
    ...controlCommands,
    consoleCommand,
    triggerCommand,
    sendCommand(openInput),
    ...sandboxCommands,
    ...accessCommands,
    changesCommand,
    ...eventsCommands,
    ...actsCommands,
    ...configCommands,
    ...endpointsCommands,
    ...recomputeCommands,
    backfillCommand,
    importCommand(openInput),
    ...syncCommands,
    ...messageCommands,
    ...databaseCommands,
    doctorCommand,
  ] satisfies readonly RegisterCommand[]
}
