import type { Config } from '../config/types.js'
import type { Rehearsal } from '../ingest/rehearse.js'
import type { OpenWriter } from '../ingest/writer.js'
import { openDatabase } from '../store/dialect.js'
import { createCallsAhead } from '../sync/calls-ahead.js'

/** Opens a copy of the database for a rehearsal: what is replayed there, and whom that would make a member of what. */
export function openCopy(
  file: string,
  openWriter: (file: string) => OpenWriter,
  { products, sync }: Pick<Config, 'products' | 'sync'>,
  clock: () => number,
): Rehearsal {
  const writer = openWriter(file)
  const db = openDatabase(file, { readOnly: true })
  return {
    replay: writer.replay,
    calls: createCallsAhead({ db, writeSync: writer.writeSync, products, bound: sync.removals, clock }),
    async close() {
      await db.destroy()
      await writer.close()
    },
  }
}
