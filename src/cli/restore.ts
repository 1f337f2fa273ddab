import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../config/types.js'
import { withByteProgress } from './byte-progress.js'
import { jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { loadNamedConfig, type SharedOptions } from './context.js'

/** `latchkey restore`: puts a backup in the place of the database, which no daemon may be serving. */
export function restoreCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('restore'), 'restore /srv/backups/monday.db')
    .argument('<file>', 'a file that `latchkey backup` made')
    .description(
      'put a backup in the place of the database, and keep what was there; no daemon may be running',
    )
    .action((file: string, options: SharedOptions) => runRestore(file, options, context))
}

async function runRestore(from: string, options: SharedOptions, context: CliContext): Promise<void> {
  const { restore } = await import('../operations/restore.js')
  const { erasureListOf } = await import('../people/erasure-list.js')
  const { database, products } = (await loadNamedConfig(options, context)).config
  const backup = resolve(context.folder, from)
  const restored = await withByteProgress(context, (onProgress) =>
    restore(database.file, backup, {
      now: context.now(),
      onProgress,
      eraseAgain: (part, file) => eraseAgain(part, erasureListOf(file), context.now),
    }),
  )
  if (options.json) return context.out(jsonLine({ ...restored, from: backup }))
  const { file, keptAs, migrated, erasedAgain } = restored
  const lines = [
    `restored ${file} from ${backup}`,
    ...(migrated.length === 0 ? [] : [`brought its schema up to date: ${migrated.join(', ')}`]),
    ...(erasedAgain === 0
      ? []
      : [`customers erased since the backup, and so erased in it too: ${erasedAgain}`]),
    keptAs === null ? 'there was no database before' : `the database that was there is kept as ${keptAs}`,
    'cursors of the change log from before are unknown now: its readers start again',
    ...(hasTargets(products) ? FOLLOW_LINES : []),
  ]
  context.out(`${lines.join('\n')}\n`)
}

/** The list of erasures beside the database stays, and says who was erased since the backup. */
async function eraseAgain(part: string, list: string, clock: () => number): Promise<number> {
  const { openWriter } = await import('../daemon/writer.js')
  const writer = openWriter(part, clock, list)
  try {
    return await writer.applyErasureList()
  } finally {
    await writer.close()
  }
}

function hasTargets(products: Config['products']): boolean {
  return products.some(({ targets }) => targets.length > 0)
}

const FOLLOW_LINES = [
  'a role or group that somebody got after the backup counts as given by your staff, and is not taken back: compare by hand',
  'sync is paused: see `latchkey sync plan`, and then `latchkey sync resume`',
]
