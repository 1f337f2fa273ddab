import type { Readable } from 'node:stream'
import type { Command } from 'commander'
import { environmentOption, type RegisterCommand, withDaemonOption, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import type { ImportOptions } from './run-import.js'

/** `latchkey import`: takes exported events in, as if they were delivered now. */
export function importCommand(stdin: () => Readable): RegisterCommand {
  return (program: Command, context: CliContext) => {
    withDaemonOption(
      withSharedOptions(
        program.command('import'),
        'import events.jsonl --dry-run',
        'import events.jsonl.gz --with-manual',
      ),
    )
      .description(
        'take in what "events export" wrote: signatures are checked, what is stored already is recognised',
      )
      .argument('<file>', 'lines of JSON, gzip or not; "-" reads standard input')
      .option('--with-manual', 'take also what nobody signed: done by hand, or told as it was read')
      .option('--dry-run', 'only check every line')
      .addOption(environmentOption('refuse events of the other environment (default: take both)'))
      .action(async (file: string, options: ImportOptions) => {
        const { runImport } = await import('./run-import.js')
        await runImport(file, stdin, options, context)
      })
  }
}
