import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { readExportPage } from '../../src/history/export.js'
import { importLines } from '../../src/history/import.js'
import { createErase } from '../../src/people/erase.js'
import { finishErasures } from '../../src/people/remove-stored.js'
import { readAccess } from '../../src/store/access.js'
import { countRows } from '../../src/store/bulk.js'
import { readEvent } from '../../src/store/event-questions.js'
import type { DeliveryInput } from '../../src/store/events.js'
import { expireBodies } from '../../src/store/expire-bodies.js'
import { endpointNamed } from '../history/exported-lines.js'
import {
  differencesIn,
  NOW,
  type RecomputeStore,
  replayOf,
  storeUnder,
} from '../recompute/recompute-store.js'
import { everyEvent } from '../store/events.js'
import { deliveryOf } from './wire.js'

const ID = `rec_${'1'.repeat(24)}`
const RECEIVED_AT = Date.UTC(2026, 5, 1)

function bodyOf(told: object = {}): Buffer {
  const data = {
    id: 'pay_1',
    method: 'CARD',
    customer: { id: 'cus_1', email: 'a@example.com' },
    product: 'pro_1',
  }
  const json = { id: ID, type: 'payment.authorized', createdAt: '2026-01-01T00:00:00Z', data, ...told }
  return Buffer.from(JSON.stringify({ ...json, reported: { by: 'backfill' } }))
}

const reported = (told: object = {}): DeliveryInput => ({
  ...{ endpoint: 'backfill', environment: 'live', headers: 'reported', receivedAt: RECEIVED_AT },
  body: bodyOf(told),
})

/** What the customer may use, and what the store says of the event. */
async function found({ db }: RecomputeStore) {
  const { entitlements } = await readAccess(db, () => NOW, {
    environment: 'live',
    customerId: 'cus_1',
    at: null,
  })
  const stored = await readEvent(db, { environment: 'live', eventId: ID })
  return { active: entitlements.filter(({ active }) => active).map(({ productId }) => productId), stored }
}

const exported = async ({ db }: RecomputeStore) => (await readExportPage(db, everyEvent(), null)).lines

async function imported(lines: readonly string[], withManual: boolean) {
  const store = await storeUnder(DOCUMENTED_POLICY)
  const ingest = async (delivery: DeliveryInput) => {
    const { receipts } = await store.writeBatch([delivery])
    return receipts[0] ?? { id: null, disposition: 'quarantined' as const }
  }
  const rules = { environments: ['live'], withManual } as const
  const outcomes = await importLines(lines, rules, { endpointNamed, ingest, clock: () => NOW })
  return { store, outcomes: outcomes.map(({ outcome }) => outcome) }
}

describe('a reported event', () => {
  it('counts as an event of the provider does, and shows that nobody signed it', async () => {
    const store = await storeUnder(DOCUMENTED_POLICY)
    await store.writeBatch([reported()])
    expect(await found(store)).toMatchObject({
      active: ['pro_1'],
      stored: { disposition: 'applied', endpoint: 'backfill', headers: null, generation: 'v3' },
    })
  })

  it('is quarantined if a webhook brings it', async () => {
    const store = await storeUnder(DOCUMENTED_POLICY, [deliveryOf(bodyOf(), { endpoint: 'backfill' })])
    expect(await found(store)).toEqual({ active: [], stored: null })
    const held = await store.db.selectFrom('events').select(['disposition', 'reason']).execute()
    expect(held).toEqual([{ disposition: 'quarantined', reason: 'id_invalid' }])
  })

  it('is the same event when the rest of its record has changed: no conflict', async () => {
    const store = await storeUnder(DOCUMENTED_POLICY)
    await store.writeBatch([reported()])
    const { receipts, remarks } = await store.writeBatch([reported({ api_version: '9' })])
    expect(receipts).toEqual([{ id: ID, disposition: 'duplicate' }])
    expect(remarks).toEqual([])
    expect(await countRows(store.db, 'event_conflicts')).toBe(0)
  })

  it('is read again by a replay and folded again by a rebuild as what it is', async () => {
    const store = await storeUnder(DOCUMENTED_POLICY)
    await store.writeBatch([reported()])
    const before = await found(store)
    // Not even an endpoint of another environment that has its name is asked.
    const backfill = { environment: 'sandbox', aheadAtMostMs: 86_400_000 } as const
    await store.recompute(replayOf({}, { endpoints: { backfill } }))
    expect(await found(store)).toEqual(before)
    expect(await differencesIn(store)).toEqual([])
  })

  it('is imported with the other unsigned lines, and only with them', async () => {
    const store = await storeUnder(DOCUMENTED_POLICY)
    await store.writeBatch([reported()])
    const lines = await exported(store)
    expect(lines.map((line) => JSON.parse(line).kind)).toEqual(['reported'])
    expect((await imported(lines, false)).outcomes).toEqual(['left_out'])
    const other = await imported(lines, true)
    expect(other.outcomes).toEqual(['applied'])
    expect(await found(other.store)).toEqual(await found(store))
    expect(await exported(other.store)).toEqual(lines)
  })

  it('loses its body to retention and keeps its effect, in an export as well', async () => {
    const store = await storeUnder(DOCUMENTED_POLICY)
    await store.writeBatch([reported()])
    await store.db.transaction().execute((trx) => expireBodies(trx, NOW, NOW))
    expect(await found(store)).toMatchObject({
      active: ['pro_1'],
      stored: { bodyRemoved: { why: 'expired' } },
    })
    const lines = await exported(store)
    const other = await imported(lines, true)
    expect(other.outcomes).toEqual(['applied'])
    expect(await exported(other.store)).toEqual(lines)
  })

  it('loses what it says of a person with the person', async () => {
    const store = await storeUnder(DOCUMENTED_POLICY)
    await store.writeBatch([reported()])
    const erase = createErase({
      db: store.db,
      write: async (act) => (await store.writeBatch([act])).receipts[0] as never,
      finish: () => finishErasures(store.db, () => NOW),
    })
    await erase({ environment: 'live', customerId: 'cus_1', actor: 'ada', reason: null })
    const { stored } = await found(store)
    expect(stored).toMatchObject({ bodyRemoved: { why: 'erased' }, disposition: 'applied' })
    expect(JSON.stringify(stored)).not.toContain('a@example.com')
  })
})
