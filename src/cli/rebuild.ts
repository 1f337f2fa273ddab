import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import {
  type DaemonOptions,
  jsonLine,
  loadNamedConfig,
  withDaemonOption,
  withSharedOptions,
} from './command.js'
import type { CliContext } from './context.js'
import { differenceText } from './difference-text.js'

interface RebuildOptions extends DaemonOptions {
  readonly verify?: true
}

/** `latchkey rebuild`: folds all stored events anew under the policy in force. */
export function rebuildCommand(program: Command, context: CliContext): void {
  withDaemonOption(withSharedOptions(program.command('rebuild'), 'rebuild', 'rebuild --verify'))
    .description('fold all stored events anew, beside the live state, and swap')
    .option('--verify', 'only compare: names what differs, changes nothing, and exits 1 if anything does')
    .action(async (options: RebuildOptions) => {
      if (options.verify) {
        if (options.url !== undefined) throw verifiesHere()
        const { verifyStore } = await import('./verify-store.js')
        return verifyStore((await loadNamedConfig(options, context)).config, options, context)
      }
      const { runRebuild } = await import('./run-rebuild.js')
      const summary = await runRebuild('in force', options, context)
      context.out(options.json ? jsonLine(summary) : differenceText(summary, { conditional: false }))
    })
}

/** Of another daemon's database it would be no answer at all. */
function verifiesHere(): LatchkeyError {
  const message =
    '--verify reads the database that is configured here, and takes no --url: run it where that daemon runs'
  return new LatchkeyError('usage', message)
}
