import type { Config } from '../config/types.js'
import { type OpenWriter, openWriter } from '../daemon/writer.js'
import { createIngestQueue, type IngestQueue } from '../ingest/queue.js'
import { createLogger } from '../log.js'
import { openStore, type Store } from '../store/store.js'
import { isDatabaseThere } from './assert-database.js'

/** A store that no daemon serves, and the way into it. */
export interface OpenIngest {
  readonly store: Store<OpenWriter>
  readonly ingest: IngestQueue['ingest']
  /** Resolves once nothing waits any more, and the store is closed. */
  close(): Promise<void>
}

/**
 * Opens the store to write to it from here; its lock is held meanwhile.
 * @throws {LatchkeyError} as `openStore` does
 */
export async function openIngest({ database, policy }: Config, clock: () => number): Promise<OpenIngest> {
  // Where there is none it is made.
  isDatabaseThere(database.file, 'write')
  const store = await openStore(database.file, policy, (file) => openWriter(file, clock))
  await store.writer.applyErasureList()
  const queue = createIngestQueue({
    writeBatch: store.writer.writeBatch,
    onWritten: () => {},
    onBroken: () => {},
    log: createLogger('silent'),
  })
  return {
    store,
    ingest: queue.ingest,
    async close() {
      await queue.drain()
      await store.close()
    },
  }
}
