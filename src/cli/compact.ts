import type { Command } from 'commander'
import { jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { loadNamedConfig, type SharedOptions } from './context.js'

/** `latchkey compact`: rewrites the database without what is not in use; no daemon may be serving it. */
export function compactCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('compact'), 'compact')
    .description('rewrite the database without unused space and what may be left in it; no daemon may run')
    .action(async (options: SharedOptions) => {
      const { assertDatabase } = await import('./assert-database.js')
      const { compactFile } = await import('../store/sqlite/compact.js')
      const { database } = (await loadNamedConfig(options, context)).config
      assertDatabase(database.file, 'write')
      const sizes = await compactFile(database.file)
      context.out(
        options.json ? jsonLine(sizes) : `${sizes.file}: ${sizes.before} bytes, now ${sizes.after}\n`,
      )
    })
}
