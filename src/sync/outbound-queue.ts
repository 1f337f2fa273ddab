import type { Kysely } from 'kysely'
import type { Environment } from '../provider/event.js'
import { latestCursor } from '../store/changes.js'
import type { QueuedMessages } from '../store/messages.js'
import type { Database } from '../store/schema.js'
import type { WriteSync } from '../store/sync-writes.js'

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

export interface OutboundQueueDeps {
  /** Reads. */
  readonly db: Kysely<Database>
  readonly writeSync: WriteSync
}

/** Queues what was appended to the change log since the last time; costs one small read where there is nothing. */
export function createOutboundQueue({ db, writeSync }: OutboundQueueDeps) {
  let upTo: number | null = null

  return async (environments: readonly Environment[]): Promise<QueuedMessages['from']> => {
    let from: QueuedMessages['from'] = 'kept'
    while (upTo === null || (await latestCursor(db)) > upTo) {
      const queued = await writeSync('queueMessages', { environments, limit: MAX_PER_TRANSACTION })
      upTo = queued.upTo
      if (queued.from !== 'kept') from = queued.from
    }
    return from
  }
}
