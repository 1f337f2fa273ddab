import { CompiledQuery, type Kysely, type KyselyPlugin, type RootOperationNode } from 'kysely'
import { describe, expect, it } from 'vitest'
import { recordDuplicates } from '../../src/store/event-duplicates.js'
import { insertEvents } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { countConflicts, countWaiting, countWaitingByReason } from '../../src/store/waiting-events.js'
import { NOON, newEvent, paymentEvent } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

const event = (id: string) => paymentEvent({ id })

async function waitingStore(): Promise<Kysely<Database>> {
  const db = await temporaryStore()
  const held = { disposition: 'held', reason: 'customer_unknown' } as const
  await db.transaction().execute((trx) =>
    insertEvents(trx, [
      newEvent(event('evt_applied')),
      newEvent(event('evt_held_1'), { ...held, receivedAt: NOON + 2 }),
      newEvent(event('evt_held_2'), { ...held, receivedAt: NOON + 1 }),
      newEvent(event('evt_held_3'), { ...held, reason: 'product_unknown' }),
      newEvent(event('evt_bad'), {
        environment: 'sandbox',
        disposition: 'quarantined',
        reason: 'not_json',
        event: null,
      }),
    ]),
  )
  return db
}

describe('events that wait', () => {
  it('are counted by environment and disposition', async () => {
    expect(await countWaiting(await waitingStore())).toEqual([
      { environment: 'live', disposition: 'held', count: 3 },
      { environment: 'sandbox', disposition: 'quarantined', count: 1 },
    ])
    expect(await countWaiting(await temporaryStore())).toEqual([])
  })

  it('are counted by reason, with the first arrival', async () => {
    const counts = await countWaitingByReason(await waitingStore())
    expect(counts).toEqual([
      { environment: 'live', disposition: 'held', reason: 'customer_unknown', count: 2, oldestAt: NOON + 1 },
      {
        environment: 'live',
        disposition: 'held',
        reason: 'product_unknown',
        count: 1,
        oldestAt: NOON + 1_000,
      },
      {
        environment: 'sandbox',
        disposition: 'quarantined',
        reason: 'not_json',
        count: 1,
        oldestAt: NOON + 1_000,
      },
    ])
  })

  it('are counted without looking at any other event', async () => {
    expect(await planOf(countWaiting)).toEqual(['SCAN events USING COVERING INDEX events_waiting'])
  })
})

it('other bodies under the id of a stored event are counted', async () => {
  const db = await waitingStore()
  expect(await countConflicts(db)).toBe(0)
  await db
    .transaction()
    .execute((trx) => recordDuplicates(trx, [newEvent(event('evt_applied'), { body: 'other' })]))
  expect(await countConflicts(db)).toBe(1)
})

/** The steps by which SQLite answers what `query` asks. */
async function planOf(query: (db: Kysely<Database>) => Promise<unknown>): Promise<readonly string[]> {
  const db = await temporaryStore()
  const asked: RootOperationNode[] = []
  const recording: KyselyPlugin = {
    transformQuery: ({ node }) => {
      asked.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  await query(db.withPlugin(recording))
  const [node] = asked
  if (node === undefined) throw new Error('nothing was asked')
  const { sql } = db.getExecutor().compileQuery(node, { queryId: 'plan' })
  const plan = CompiledQuery.raw(`explain query plan ${sql}`)
  const { rows } = await db.executeQuery<{ detail: string }>(plan)
  return rows.map(({ detail }) => detail)
}
