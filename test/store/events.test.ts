import fc from 'fast-check'
import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { SourceKey } from '../../src/entitlements/model.js'
import { sourceKey } from '../../src/entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../../src/provider/event.js'
import {
  insertEvents,
  loadStoredIds,
  type NewEvent,
  placeEvents,
  setDispositions,
} from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { eventInForm } from '../../src/store/stored-form.js'
import { NOON, newEvent, paymentEvent, subscriptionEvent } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

/** By `sourceKey`, what the events of each source say. */
async function eventsOfSources(db: Kysely<Database>, environment: Environment, keys: readonly SourceKey[]) {
  const found = new Map<string, NormalizedEvent[]>(keys.map((key) => [sourceKey(key), []]))
  const rows = await db.selectFrom('events').selectAll().where('environment', '=', environment).execute()
  for (const row of rows) {
    const key = { kind: row.source_kind, id: row.source_id } as SourceKey
    found.get(sourceKey(key))?.push(eventInForm(String(row.normalized), row.event_id))
  }
  return found
}

const PAYMENT = { kind: 'payment', id: 'pay_1' } as const
const SUBSCRIPTION = { kind: 'subscription', id: 'sub_1' } as const

describe('storing events', () => {
  it('keeps the exact bytes, the headers and what was read from them', async () => {
    const db = await temporaryStore()
    const event = paymentEvent({ metadata: { order: '17' }, railProof: { rail: 'card', strength: 2 } })
    const body = Buffer.from([0xef, 0xbb, 0xbf, 0x00, 0x7b, 0xff, 0xfe])
    const stored = { ...newEvent(event), body }
    await db.transaction().execute((trx) => insertEvents(trx, [stored]))
    const row = await db.selectFrom('events').selectAll().executeTakeFirstOrThrow()
    expect(row).toMatchObject({
      seq: 1,
      environment: 'live',
      event_id: 'evt_1',
      endpoint: 'v3',
      received_at: NOON + 1_000,
      last_received_at: NOON + 1_000,
      deliveries: 1,
      body_sha256: stored.bodySha256,
      disposition: 'applied',
      reason: null,
      generation: 'v3',
      type: 'payment.succeeded',
      created_at: NOON,
      normalizer_version: 1,
      customer_id: 'cus_1',
      payment_id: 'pay_1',
      source_kind: 'payment',
      source_id: 'pay_1',
    })
    expect(row.body?.equals(body)).toBe(true)
    expect(JSON.parse(row.headers)).toEqual(stored.headers)
    expect(eventInForm(row.normalized ?? '', event.id)).toEqual(event)
  })

  it('never stores an id twice in one environment, and then nothing of what came with it', async () => {
    const db = await temporaryStore()
    const [first, second] = [newEvent(paymentEvent()), newEvent(paymentEvent({ id: 'evt_3' }))]
    const insert = (events: readonly NewEvent[]) =>
      db.transaction().execute((trx) => insertEvents(trx, events))
    await insert([first])
    await expect(insert([second, { ...first, endpoint: 'other' }])).rejects.toMatchObject({
      code: 'SQLITE_CONSTRAINT_UNIQUE',
    })
    expect(await db.selectFrom('events').select(['event_id', 'endpoint']).execute()).toEqual([
      { event_id: 'evt_1', endpoint: 'v3' },
    ])
  })

  it('tells which ids are stored already, in one environment', async () => {
    const db = await temporaryStore()
    await db.transaction().execute((trx) => insertEvents(trx, [newEvent(paymentEvent())]))
    expect(await loadStoredIds(db, 'live', ['evt_1', 'evt_3', 'evt_1'])).toEqual(new Set(['evt_1']))
    expect(await loadStoredIds(db, 'sandbox', ['evt_1'])).toEqual(new Set())
  })

  it('never mixes environments', async () => {
    const db = await temporaryStore()
    const live = newEvent(paymentEvent())
    const sandbox: NewEvent = { ...live, environment: 'sandbox' }
    await db.transaction().execute((trx) => insertEvents(trx, [live, sandbox]))
    await db.transaction().execute(async (trx) => {
      await placeEvents(trx, [{ seq: 2, source: SUBSCRIPTION }])
      await setDispositions(trx, 'sandbox', [
        { eventId: 'evt_1', disposition: 'held', reason: 'rail_unknown' },
      ])
    })
    expect((await eventsOfSources(db, 'live', [PAYMENT])).get(sourceKey(PAYMENT))).toHaveLength(1)
    expect((await eventsOfSources(db, 'sandbox', [PAYMENT])).get(sourceKey(PAYMENT))).toEqual([])
    const rows = await db.selectFrom('events').select(['environment', 'disposition', 'reason']).execute()
    expect(rows).toEqual([
      { environment: 'live', disposition: 'applied', reason: null },
      { environment: 'sandbox', disposition: 'held', reason: 'rail_unknown' },
    ])
  })

  it('keeps what was quarantined, and gives it to no source', async () => {
    const db = await temporaryStore()
    const quarantined = newEvent(paymentEvent(), {
      eventId: 'sha256:00',
      body: 'not json',
      disposition: 'quarantined',
      reason: 'not_json',
      event: null,
      source: null,
    })
    await db.transaction().execute((trx) => insertEvents(trx, [quarantined]))
    const row = await db.selectFrom('events').selectAll().executeTakeFirstOrThrow()
    expect(row).toMatchObject({
      disposition: 'quarantined',
      reason: 'not_json',
      normalized: null,
      type: null,
    })
    expect(row.body?.toString()).toBe('not json')
  })

  it('takes ids of any text as they are', async () => {
    const db = await temporaryStore()
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 })
    const awkward = fc.constantFrom(
      `'; drop table events; --`,
      'a\r\nb',
      '<b>&amp;</b>',
      '../..',
      '%00',
      '"',
      '?1',
    )
    const anyId = fc.oneof(awkward, text)
    await fc.assert(
      fc.asyncProperty(anyId, anyId, async (eventId, paymentId) => {
        await db.deleteFrom('events').execute()
        const event = paymentEvent({ id: eventId, paymentId, customerId: paymentId })
        await db.transaction().execute(async (trx) => {
          await insertEvents(trx, [newEvent(event)])
          const { seq } = await trx.selectFrom('events').select('seq').executeTakeFirstOrThrow()
          await placeEvents(trx, [{ seq, source: { kind: 'subscription', id: eventId } }])
        })
        const source = { kind: 'subscription', id: eventId } as const
        expect(await eventsOfSources(db, 'live', [source])).toEqual(new Map([[sourceKey(source), [event]]]))
      }),
      { numRuns: 50 },
    )
  })

  it('works on more rows than one statement can bind', async () => {
    const db = await temporaryStore()
    const ids = Array.from({ length: 17_000 }, (_, index) => `evt_${index}`)
    const sources = ids.map((id) => ({ kind: 'payment', id }) as const)
    const sample = newEvent(paymentEvent())
    await db.transaction().execute(async (trx) => {
      const rows = sources.map((source) => ({ ...sample, eventId: source.id, source }))
      await insertEvents(trx, rows)
      await setDispositions(
        trx,
        'live',
        ids.map((eventId) => ({ eventId, disposition: 'held', reason: 'customer_unknown' })),
      )
    })
    const loaded = await eventsOfSources(db, 'live', sources)
    expect([...loaded.values()].every((events) => events.length === 1)).toBe(true)
    const held = await db.selectFrom('events').select('seq').where('disposition', '=', 'held').execute()
    expect(held).toHaveLength(ids.length)
  })
})

describe('the events of a source', () => {
  it('are those of its own kind and id, and none for a source that has none', async () => {
    const db = await temporaryStore()
    const [payment, subscription] = [
      paymentEvent({ paymentId: 'x' }),
      subscriptionEvent({ subscriptionId: 'x' }),
    ]
    await db.transaction().execute((trx) => insertEvents(trx, [newEvent(payment), newEvent(subscription)]))
    const keys = [
      { kind: 'payment', id: 'x' },
      { kind: 'subscription', id: 'x' },
      { kind: 'manual', id: 'x' },
    ] as const
    expect(await eventsOfSources(db, 'live', keys)).toEqual(
      new Map<string, NormalizedEvent[]>([
        ['payment x', [payment]],
        ['subscription x', [subscription]],
        ['manual x', []],
      ]),
    )
  })
})

describe('the disposition of a stored event', () => {
  it('changes with its reason, and back', async () => {
    const db = await temporaryStore()
    await db.transaction().execute(async (trx) => {
      await insertEvents(trx, [newEvent(paymentEvent()), newEvent(paymentEvent({ id: 'evt_3' }))])
      await setDispositions(trx, 'live', [
        { eventId: 'evt_3', disposition: 'held', reason: 'product_unknown' },
      ])
      await setDispositions(trx, 'live', [
        { eventId: 'evt_1', disposition: 'held', reason: 'customer_unknown' },
        { eventId: 'evt_3', disposition: 'applied', reason: null },
      ])
    })
    const rows = await db.selectFrom('events').select(['event_id', 'disposition', 'reason']).execute()
    expect(rows).toEqual([
      { event_id: 'evt_1', disposition: 'held', reason: 'customer_unknown' },
      { event_id: 'evt_3', disposition: 'applied', reason: null },
    ])
  })
})
