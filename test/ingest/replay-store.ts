import type { Kysely } from 'kysely'
import type { Policy } from '../../src/entitlements/policy.js'
import type { EventFilter } from '../../src/entitlements/stored-event.js'
import { createReplay, type Replay, type ReplayOrder } from '../../src/ingest/replay.js'
import type { Environment } from '../../src/provider/event.js'
import type { Database } from '../../src/store/schema.js'
import { everything, NOW, type RebuildStore, storeUnder } from './rebuild-store.js'

/** Events that a replay of these stores reads at once: few, so that short histories take several batches. */
export const EVENTS_PER_BATCH = 3

/** All events of an environment, read from the first one on or from where it was left. */
export function orderOf(filter: Partial<EventFilter> = {}, order: Partial<ReplayOrder> = {}): ReplayOrder {
  const all = { disposition: null, type: null, customerId: null, endpoint: null, from: null, to: null }
  return { filter: { environment: 'live', ...all, ...filter }, endpoints: {}, isAnew: false, ...order }
}

export interface ReplayStore extends RebuildStore {
  readonly replay: Replay
}

export async function replayStore(policy: Policy, ...more: [] | [{ file: string }]): Promise<ReplayStore> {
  const store = await storeUnder(policy, [], ...more)
  const replay = createReplay({ db: store.db, clock: () => NOW, batchSize: EVENTS_PER_BATCH })
  return { ...store, replay }
}

export async function replayAll(replay: Replay): Promise<void> {
  for (const environment of ['live', 'sandbox'] satisfies Environment[])
    await replay(orderOf({ environment }))
}

/** All that follows from the stored events, and the events themselves, as the tables hold it. */
export async function allOf(db: Kysely<Database>) {
  return {
    ...(await everything(db)),
    rows: await db.selectFrom('events').selectAll().orderBy('seq').execute(),
    references: await db
      .selectFrom('customer_references')
      .selectAll()
      .orderBy('environment')
      .orderBy('name')
      .orderBy('value')
      .orderBy('customer_id')
      .execute(),
  }
}

/** The same but for how often anything has changed on the way. */
export async function standing(db: Kysely<Database>) {
  const { cursor: _, ...tables } = await allOf(db)
  return tables
}
