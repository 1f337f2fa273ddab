import type { Command } from 'commander'
import { jsonLine, loadNamedConfig, type SharedOptions, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'

/** `latchkey compact`: writes the database anew, without what is not in use; no daemon may be serving it. */
export function compactCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('compact'), 'compact')
    .description(
      'write the database anew, without unused space and what may be left in it; no daemon may run',
    )
    .action(async (options: SharedOptions) => {
      const { compactFile } = await import('./compact-file.js')
      const { database } = (await loadNamedConfig(options, context)).config
      const sizes = await compactFile(database.file)
      context.out(
        options.json ? jsonLine(sizes) : `${sizes.file}: ${sizes.before} bytes, now ${sizes.after}\n`,
      )
    })
}
