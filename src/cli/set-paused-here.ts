import { existsSync } from 'node:fs'
import type { Config } from '../config/types.js'
import { LatchkeyError } from '../errors.js'
import { openWriter } from '../ingest/writer.js'
import { openStore } from '../store/store.js'
import type { CliContext } from './context.js'

/**
 * Pauses or resumes in the database of no daemon; its lock is held meanwhile, so that none starts.
 * @throws {LatchkeyError} `store_missing`, `store_in_use`
 */
export async function setPausedHere(paused: boolean, { database, policy }: Config, { now }: CliContext) {
  const { file } = database
  if (!existsSync(file)) throw new LatchkeyError('store_missing', `There is no database at ${file}.`)
  const store = await openStore(file, policy, now, (place) => openWriter(place, now))
  try {
    await store.writer.writeSync('setSyncPaused', paused)
  } finally {
    await store.close()
  }
  return { paused }
}
