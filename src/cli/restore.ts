import type { Command } from 'commander'
import { type SharedOptions, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'

/** `latchkey restore`: puts a backup in the place of the database, which no daemon may be serving. */
export function restoreCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('restore'), 'restore /srv/backups/monday.db')
    .argument('<file>', 'a file that `latchkey backup` made')
    .description(
      'put a backup in the place of the database, and keep what was there; no daemon may be running',
    )
    .action(async (file: string, options: SharedOptions) => {
      const { runRestore } = await import('./run-restore.js')
      await runRestore(file, options, context)
    })
}
