import type { Config } from '../config/types.js'
import { openWriter } from '../daemon/writer.js'
import { openStore } from '../store/store.js'
import { assertDatabase } from './assert-database.js'
import type { CliContext } from './context.js'

/**
 * Pauses or resumes in the database of no daemon; its lock is held meanwhile, so that none starts.
 * @throws {LatchkeyError} `store_missing`, `store_unavailable`, `store_in_use`
 */
export async function setPausedHere(paused: boolean, { database, policy }: Config, { now }: CliContext) {
  const { file } = database
  assertDatabase(file, 'write')
  const store = await openStore(file, policy, (place) => openWriter(place, now))
  try {
    await store.writer.writeSync('setSyncPaused', paused)
  } finally {
    await store.close()
  }
  return { paused }
}
