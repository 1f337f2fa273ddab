import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkReadings, checkStoredForms } from '../../src/doctor/stored.js'
import { packHistory } from '../../src/entitlements/history.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { insertEvents } from '../../src/store/events.js'
import { paymentEvent } from '../entitlements/events.js'
import { grantOf } from '../ingest/wire.js'
import { deliveries, storeUnder } from '../recompute/recompute-store.js'
import { newEvent } from '../store/events.js'
import { temporaryStore } from '../store/temporary-store.js'

describe('the doctor, of what is stored as read from the bytes,', () => {
  const CONFIG = {
    endpoints: [{ name: 'v3', environment: 'live' as const, secrets: [], toleranceSeconds: 300 }],
  }

  it('finds all of it right, whatever was taken in', async () => {
    const property = fc.asyncProperty(deliveries, async (told) => {
      const { db, close } = await storeUnder(DOCUMENTED_POLICY, told)
      expect(await checkReadings(db, CONFIG)).toMatchObject([{ level: 'ok', what: 'readings' }])
      await close()
    })
    await fc.assert(property, { numRuns: 20 })
  })

  it.each([
    { type: 'payment.settled' },
    { created_at: 1 },
    { customer_id: 'cus_9' },
    { payment_id: null },
    { normalized: null, disposition: 'quarantined', reason: 'normalizer_failed' },
    { normalized: '{}' },
  ] as const)('names the first event that is stored with %j, and a replay', async (otherwise) => {
    const { db } = await storeUnder(DOCUMENTED_POLICY, [grantOf(1), grantOf(2), grantOf(3)])
    await db.updateTable('events').set(otherwise).where('event_id', '!=', 'evt_1').execute()
    const detail = '2 of 3 events stored otherwise than the bytes say, the first evt_2 in live'
    const todo = 'see what reading them again would change: `latchkey replay --dry-run`'
    expect(await checkReadings(db, CONFIG)).toEqual([{ level: 'warn', what: 'readings', detail, todo }])
  })
})

describe('the doctor, of stored forms,', () => {
  const HISTORY = packHistory([])

  /** A store of two sources, and of more events than are read at once. */
  async function patient() {
    const db = await temporaryStore()
    const events = Array.from({ length: 501 }, (_, n) => newEvent(paymentEvent({ id: `evt_${n}` })))
    await db.transaction().execute((trx) => insertEvents(trx, events))
    const source = { environment: 'live', kind: 'payment', customer_id: 'cus_1', newest_at: 0 } as const
    const stored = { ...source, state: JSON.stringify({ intervals: [] }), history: HISTORY }
    const sources = ['pay_1', 'pay_2'].map((id) => ({ ...stored, source_id: id }))
    await db.insertInto('sources').values(sources).execute()
    const alterEvents = (normalized: string | null, ...ids: readonly string[]) =>
      db.updateTable('events').set({ normalized }).where('event_id', 'in', ids).execute()
    const alterSource = (told: { state?: string; history?: string }) =>
      db.updateTable('sources').set(told).where('source_id', '=', 'pay_2').execute()
    return { check: () => checkStoredForms(db), alterEvents, alterSource }
  }
  const found = (level: string, detail: string, todo: string | null) => ({
    level,
    what: 'stored forms',
    detail,
    todo,
  })

  it('finds that all can be read', async () => {
    const { check, alterEvents } = await patient()
    await alterEvents(null, 'evt_7')
    expect(await check()).toEqual([found('ok', 'all can be read, of 500 events and 2 sources', null)])
  })

  it.each(['{"half":', 'null', '{}'])('names the events of which is stored %s', async (normalized) => {
    const { check, alterEvents } = await patient()
    await alterEvents(normalized, 'evt_500', 'evt_3', 'evt_1', 'evt_2')
    const detail = '4 of 501 events can’t be read (evt_1 in live, evt_2 in live, evt_3 in live, and 1 more)'
    const todo = 'restore a backup; `latchkey replay` reads them anew where their bodies are there'
    expect(await check()).toEqual([found('fail', detail, todo)])
  })

  it.each([
    { state: '{"half":' },
    { state: '{}' },
    { history: '{"half":' },
    { history: `${HISTORY}\n7\tevt_7` },
  ])('names the source of which is stored %j, before events, since a replay needs it', async (stored) => {
    const { check, alterEvents, alterSource } = await patient()
    await alterSource(stored)
    const detail = '1 of 2 sources can’t be read (payment pay_2 in live)'
    const source = found('fail', detail, 'fold them anew: `latchkey rebuild`')
    expect(await check()).toEqual([source])
    await alterEvents('{', 'evt_7')
    expect(await check()).toMatchObject([source, { detail: '1 of 501 events can’t be read (evt_7 in live)' }])
  })
})
