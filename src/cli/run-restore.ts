import { resolve } from 'node:path'
import type { Config } from '../config/types.js'
import { openWriter } from '../daemon/writer.js'
import { erasureListOf } from '../people/erasure-list.js'
import { type Restored, restore } from '../store/restore.js'
import { withByteProgress } from './byte-progress.js'
import { jsonLine, loadNamedConfig, type SharedOptions } from './command.js'
import type { CliContext } from './context.js'

/** Puts a backup in the place of the configured database, and says what was there. */
export async function runRestore(from: string, options: SharedOptions, context: CliContext): Promise<void> {
  const { database, products } = (await loadNamedConfig(options, context)).config
  const backup = resolve(context.folder, from)
  const restored = await withByteProgress(context, (onProgress) =>
    restore(database.file, backup, {
      now: context.now(),
      onProgress,
      eraseAgain: (part, place) => eraseAgain(part, erasureListOf(place), context.now),
    }),
  )
  context.out(options.json ? jsonLine({ ...restored, from: backup }) : describe(restored, backup, products))
}

/** The list of erasures beside the database stays, and says who was erased since the backup. */
async function eraseAgain(part: string, list: string, clock: () => number): Promise<number> {
  const writer = openWriter(part, clock, list)
  try {
    return await writer.applyErasureList()
  } finally {
    await writer.close()
  }
}

function describe(
  { file, keptAs, migrated, membershipsKept, erasedAgain }: Restored,
  backup: string,
  products: Config['products'],
): string {
  return [
    `restored ${file} from ${backup}`,
    ...(migrated.length === 0 ? [] : [`brought its schema up to date: ${migrated.join(', ')}`]),
    ...(erasedAgain === 0
      ? []
      : [`customers erased since the backup, and so erased in it too: ${erasedAgain}`]),
    keptAs === null ? 'there was no database before' : `the database that was there is kept as ${keptAs}`,
    'whoever follows the change log begins anew: cursors from before are unknown now',
    ...(products.some(({ targets }) => targets.length > 0) ? followLines(membershipsKept) : []),
    '',
  ].join('\n')
}

/** Of roles and groups. */
function followLines(membershipsKept: number | null): readonly string[] {
  return [
    membershipsKept === null
      ? 'whoever got a role, or into a group, after the backup counts as let in by staff, and is not taken out: compare by hand'
      : `memberships of roles and groups, as the database that was there knew them: ${membershipsKept}`,
    'sync is paused: see `latchkey sync plan`, and then `latchkey sync resume`',
  ]
}
