import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import {
  type DaemonOptions,
  environmentOption,
  jsonLine,
  loadNamedConfig,
  withDaemonOption,
  withSharedOptions,
} from './command.js'
import type { CliContext } from './context.js'
import { differenceText } from './difference-text.js'

interface RebuildOptions extends DaemonOptions {
  readonly verify?: true
  readonly environment?: Environment
}

/** `latchkey rebuild`: works out everything again from the stored events, under the policy in force. */
export function rebuildCommand(program: Command, context: CliContext): void {
  withDaemonOption(withSharedOptions(program.command('rebuild'), 'rebuild', 'rebuild --verify'))
    .description('work out all access again from the stored events, and correct what differs')
    .option('--verify', 'only compare: names what differs, changes nothing, and exits 1 if anything does')
    .addOption(
      environmentOption(
        'compare or report only this environment; a rebuild always covers both (default: both)',
      ),
    )
    .action(async (options: RebuildOptions) => {
      if (options.verify) {
        if (options.url !== undefined) throw verifiesHere()
        const { verifyStore } = await import('./verify-store.js')
        return verifyStore((await loadNamedConfig(options, context)).config, options, context)
      }
      const { runRebuild } = await import('./run-rebuild.js')
      const summary = await runRebuild('in force', options, context, options.environment)
      context.out(
        options.json ? jsonLine(summary) : differenceText(summary, { conditional: false, ...options }),
      )
    })
}

/** Of another daemon's database it would be no answer at all. */
function verifiesHere(): LatchkeyError {
  const message =
    '--verify reads the database that is configured here, and takes no --url: run it where that daemon runs'
  return new LatchkeyError('usage', message)
}
