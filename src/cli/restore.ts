import { resolve } from 'node:path'
import type { Command } from 'commander'
import { openWriter } from '../ingest/writer.js'
import { erasureFileOf } from '../store/erasure-file.js'
import { type Restored, restore } from '../store/restore.js'
import { withByteProgress } from './byte-progress.js'
import { jsonLine, loadNamedConfig, type SharedOptions, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'

/** `latchkey restore`: puts a backup in the place of the database, which no daemon may be serving. */
export function restoreCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('restore'), 'restore /srv/backups/monday.db')
    .argument('<file>', 'a file that `latchkey backup` made')
    .description(
      'put a backup in the place of the database, and keep what was there; no daemon may be running',
    )
    .action((file: string, options: SharedOptions) => restoreFrom(file, options, context))
}

async function restoreFrom(from: string, options: SharedOptions, context: CliContext): Promise<void> {
  const { database } = loadNamedConfig(options, context).config
  const backup = resolve(context.folder, from)
  const restored = await withByteProgress(context, (onProgress) =>
    restore(database.file, backup, {
      now: context.now(),
      onProgress,
      bringUpToDate: (part, place) => eraseAgain(part, place, context.now),
    }),
  )
  context.out(options.json ? jsonLine({ ...restored, from: backup }) : describe(restored, backup))
}

/** Erasures are written down beside the database, and so outlast it. */
async function eraseAgain(part: string, place: string, clock: () => number): Promise<number> {
  const writer = openWriter(part, clock, erasureFileOf(place))
  try {
    const count = await writer.settleErasures()
    await writer.finishErasures()
    return count
  } finally {
    await writer.close()
  }
}

function describe({ file, keptAs, migrated, erasedAgain }: Restored, backup: string): string {
  return [
    `restored ${file} from ${backup}`,
    ...(migrated.length === 0 ? [] : [`brought its schema up to date: ${migrated.join(', ')}`]),
    ...(erasedAgain === 0
      ? []
      : [`customers erased since the backup, and so erased in it too: ${erasedAgain}`]),
    keptAs === null ? 'there was no database before' : `the database that was there is kept as ${keptAs}`,
    'whoever follows the change log begins anew: cursors from before are unknown now',
    '',
  ].join('\n')
}
