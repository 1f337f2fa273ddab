import type { Command } from 'commander'
import type { BroughtUpToDate } from '../store/migrate.js'
import { jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { loadNamedConfig, type SharedOptions } from './context.js'

/** `latchkey migrate`: what the daemon's start does to the schema, without the daemon. */
export function migrateCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('migrate'), 'migrate')
    .description('bring the schema of the stopped database up to date; every start of the daemon does so too')
    .action(async (options: SharedOptions) => {
      const { assertDatabase } = await import('./assert-database.js')
      const { bringFileUpToDate } = await import('../store/migrate.js')
      const { config } = await loadNamedConfig(options, context)
      assertDatabase(config.database.file, 'write')
      const done = await bringFileUpToDate(config.database.file)
      context.out(options.json ? jsonLine(done) : describe(done))
    })
}

function describe({ steps, backup }: BroughtUpToDate): string {
  if (steps.length === 0) return 'the schema is up to date\n'
  const kept = backup === null ? [] : [`as it was before: ${backup}`]
  return [...steps.map((step) => `ran ${step}`), ...kept, ''].join('\n')
}
