import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { insertEvents, type NewEvent, recordDuplicates } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { NOON, newEvent, paymentEvent } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

const FIRST = newEvent(paymentEvent())
const OTHER_BODY = newEvent(paymentEvent(), { body: '{"forged":"no, signed"}' })

async function storeWithFirst(): Promise<Kysely<Database>> {
  const db = await temporaryStore()
  await db.transaction().execute((trx) => insertEvents(trx, [FIRST]))
  return db
}

function record(db: Kysely<Database>, deliveries: readonly NewEvent[]): Promise<readonly NewEvent[]> {
  return db.transaction().execute((trx) => recordDuplicates(trx, deliveries))
}

function counts(db: Kysely<Database>) {
  return db.selectFrom('events').select(['environment', 'deliveries', 'last_received_at']).execute()
}

describe('a delivery of an event that is stored', () => {
  it('is counted, several in one batch too, and moves the last receipt forward only', async () => {
    const db = await storeWithFirst()
    const again = (receivedAt: number) => ({ ...FIRST, receivedAt })
    expect(await record(db, [again(NOON + 9_000), again(NOON + 5_000)])).toEqual([])
    expect(await record(db, [again(NOON)])).toEqual([])
    expect(await counts(db)).toEqual([{ environment: 'live', deliveries: 4, last_received_at: NOON + 9_000 }])
    expect(await db.selectFrom('event_conflicts').selectAll().execute()).toEqual([])
  })

  it('is kept as a conflict where its body is another, and the first body stands', async () => {
    const db = await storeWithFirst()
    expect(await record(db, [FIRST, OTHER_BODY])).toEqual([OTHER_BODY])
    const [stored] = await db.selectFrom('events').selectAll().execute()
    expect(stored).toMatchObject({ deliveries: 3, body_sha256: FIRST.bodySha256 })
    expect(stored?.body).toEqual(FIRST.body)
    const [conflict] = await db.selectFrom('event_conflicts').selectAll().execute()
    expect(conflict).toMatchObject({
      environment: 'live',
      event_id: 'evt_1',
      endpoint: 'v3',
      received_at: NOON + 1_000,
      deliveries: 1,
    })
    expect(conflict?.body).toEqual(OTHER_BODY.body)
  })

  it('keeps each other body once, however often it comes', async () => {
    const db = await storeWithFirst()
    const third = newEvent(paymentEvent(), { body: '[]' })
    expect(await record(db, [OTHER_BODY, OTHER_BODY, third])).toEqual([OTHER_BODY, OTHER_BODY, third])
    expect(await record(db, [OTHER_BODY])).toEqual([OTHER_BODY])
    const conflicts = await db
      .selectFrom('event_conflicts')
      .select(['body_sha256', 'deliveries'])
      .orderBy('deliveries')
      .execute()
    expect(conflicts).toEqual([
      { body_sha256: third.bodySha256, deliveries: 1 },
      { body_sha256: OTHER_BODY.bodySha256, deliveries: 3 },
    ])
    expect(await counts(db)).toMatchObject([{ deliveries: 5 }])
  })

  it('counts in its own environment', async () => {
    const db = await storeWithFirst()
    const sandbox: NewEvent = { ...OTHER_BODY, environment: 'sandbox' }
    await db.transaction().execute((trx) => insertEvents(trx, [sandbox]))
    expect(await record(db, [sandbox])).toEqual([])
    expect(await counts(db)).toMatchObject([
      { environment: 'live', deliveries: 1 },
      { environment: 'sandbox', deliveries: 2 },
    ])
  })
})
