import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { Receipt } from '../../src/ingest/delivery.js'
import { ENGINE } from '../world.js'
import { metric, warnings } from './observed.js'
import { sendGathered, writeBeside } from './other-writer.js'
import { ask, LIVE_SECRET, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { storedEvents } from './stored.js'
import { CUSTOMER, PAYMENT, PRODUCT, wireEvent } from './wire-events.js'

const FIRST = wireEvent('payment.authorized', { id: 'evt_same' })
const OTHER = wireEvent('payment.authorized', { id: 'evt_same', customer: 'cus_other' })
/** About neither of the two customers. */
const UNRELATED = wireEvent('customer.created', { customer: 'cus_unrelated' })

async function receipt(daemon: RunningDaemon, body: string | Buffer): Promise<Receipt> {
  return (await (await send(daemon, body)).json()) as Receipt
}

async function isActive(daemon: RunningDaemon, customer: string): Promise<unknown> {
  const answer = await ask(daemon, `/entitlements/${customer}/${PRODUCT}`)
  return ((await answer.json()) as { active: unknown }).active
}

function conflicts(daemon: RunningDaemon) {
  return daemon.stored((db) => db.selectFrom('event_conflicts').selectAll().execute())
}

describe('the same event again', () => {
  it('is counted on the stored one, and changes nothing', async () => {
    const daemon = await runDaemon()
    expect(await receipt(daemon, FIRST)).toMatchObject({ id: 'evt_same', disposition: 'applied' })
    const before = await (await ask(daemon, `/entitlements/${CUSTOMER}`)).text()
    daemon.setNow(NOW + 1000)
    for (const _ of [1, 2]) {
      expect(await receipt(daemon, FIRST)).toMatchObject({ id: 'evt_same', disposition: 'duplicate' })
    }
    expect(await storedEvents(daemon)).toMatchObject([
      {
        event_id: 'evt_same',
        deliveries: 3,
        received_at: NOW,
        last_received_at: NOW + 1000,
        disposition: 'applied',
      },
    ])
    daemon.setNow(NOW)
    expect(await (await ask(daemon, `/entitlements/${CUSTOMER}`)).text()).toBe(before)
    expect(await metric(daemon, 'latchkey_deliveries_total{endpoint="live",disposition="duplicate"}')).toBe(2)
    expect(warnings(daemon)).toEqual([])
  })

  it('is stored once, however many copies come in one batch', async () => {
    const daemon = await runDaemon()
    const [, ...answers] = await sendGathered(daemon, [UNRELATED, ...Array(20).fill(FIRST)])
    const dispositions = answers.map(({ body }) => body.disposition)
    expect(dispositions.sort()).toEqual(['applied', ...Array(19).fill('duplicate')])
    const stored = await storedEvents(daemon)
    expect(stored).toHaveLength(2)
    expect(stored.find(({ event_id: id }) => id === 'evt_same')).toMatchObject({ deliveries: 20 })
  })

  it('is the same through whichever endpoint of its environment it comes', async () => {
    const live = { environment: 'live', secrets: [LIVE_SECRET] }
    const daemon = await runDaemon({ config: { endpoints: { live, legacy: live } } })
    await receipt(daemon, FIRST)
    const answer = await send(daemon, FIRST, { endpoint: 'legacy' })
    expect(await answer.json()).toMatchObject({ disposition: 'duplicate' })
    expect(await storedEvents(daemon)).toMatchObject([{ endpoint: 'live', deliveries: 2 }])
  })
})

describe('another body under the id of a stored event', () => {
  it('is kept apart and alarmed, and the first stands', async () => {
    const daemon = await runDaemon()
    await receipt(daemon, FIRST)
    expect(await receipt(daemon, OTHER)).toMatchObject({ id: 'evt_same', disposition: 'duplicate' })
    await receipt(daemon, OTHER)
    await receipt(daemon, FIRST)

    expect(await storedEvents(daemon)).toMatchObject([{ body: Buffer.from(FIRST), deliveries: 4 }])
    expect(await conflicts(daemon)).toMatchObject([
      { event_id: 'evt_same', body: Buffer.from(OTHER), deliveries: 2 },
    ])
    expect([await isActive(daemon, CUSTOMER), await isActive(daemon, 'cus_other')]).toEqual([true, false])

    const alarm = { level: 'error', endpoint: 'live', eventId: 'evt_same' }
    expect(warnings(daemon)).toMatchObject([alarm, alarm])
    expect(JSON.stringify(daemon.logged())).not.toContain('cus_other')
    expect(await metric(daemon, 'latchkey_conflicts_total{endpoint="live"}')).toBe(2)
  })

  it('may be nothing but the same event written differently: only bytes are compared', async () => {
    const daemon = await runDaemon()
    await receipt(daemon, FIRST)
    await receipt(daemon, `${FIRST} `)
    expect(await conflicts(daemon)).toMatchObject([{ body: Buffer.from(`${FIRST} `) }])
  })

  it('stands apart too when both come in one batch: the first to arrive is stored', async () => {
    const daemon = await runDaemon()
    await sendGathered(daemon, [UNRELATED, FIRST, OTHER, OTHER])
    const [, stored] = await storedEvents(daemon)
    const [kept] = await conflicts(daemon)
    expect([stored?.body?.toString(), kept?.body?.toString()].sort()).toEqual([FIRST, OTHER].sort())
    expect(stored?.deliveries).toBe(3)
    const active = [await isActive(daemon, CUSTOMER), await isActive(daemon, 'cus_other')]
    expect(active).toEqual([stored?.body?.toString() === FIRST, stored?.body?.toString() === OTHER])
  })
})

const REFUSE_POISON = {
  sqlite: sql`create trigger refuse before insert on events when new.event_id = 'evt_poison'
    begin select raise(abort, 'not this one'); end`,
  postgres: sql`alter table events add check (event_id <> 'evt_poison')`,
}

describe('bad deliveries among good ones', () => {
  const BAD = [
    '',
    'null',
    '[',
    '{"id":"evt_\\u0000"}',
    '{"id":"evt_\\ud800","createdAt":"2026-03-01T11:00:00Z"}',
    `{"id":"evt_deep","a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
    `{"id":"evt_long","createdAt":"2026-03-01T11:00:00Z","type":"${'payment.'.repeat(10_000)}"}`,
    wireEvent('payment.authorized', { customer: 'cus_\u0000' }),
    wireEvent('payment.authorized', { payment: 'p'.repeat(12_288) }),
    OTHER,
  ]

  const customers = Array.from({ length: 60 }, (_, index) => `cus_good_${index}`)
  const good = customers.map((customer) => {
    return wireEvent('payment.authorized', { customer, payment: `${PAYMENT}_${customer}` })
  })

  it('keep no good one from being applied', async () => {
    const daemon = await runDaemon()
    await receipt(daemon, FIRST)
    const mixed = good.flatMap((body, index) => [body, BAD[index % BAD.length] ?? ''])
    const answers = await sendGathered(daemon, mixed)

    expect(answers.map(({ status }) => status)).toEqual(mixed.map(() => 200))
    expect(answers.filter(({ body }) => body.disposition === 'applied')).toHaveLength(good.length)
    for (const customer of customers) expect(await isActive(daemon, customer)).toBe(true)
    const bodies = new Set((await storedEvents(daemon)).map(({ body }) => body?.toString()))
    for (const body of [...good, ...BAD.slice(0, -1)]) expect(bodies).toContain(body)
    expect(warnings(daemon).filter(({ msg }) => /could not|bug/.test(String(msg)))).toEqual([])
  })

  it('are alone in being refused where the database itself will not take them', async () => {
    const daemon = await runDaemon()
    await writeBeside(daemon, (db) => REFUSE_POISON[ENGINE].execute(db))
    const poison = wireEvent('payment.authorized', { id: 'evt_poison', customer: 'cus_poison' })
    const answers = await sendGathered(daemon, [...good, poison])

    expect(answers.at(-1)).toMatchObject({ status: 503, body: { code: 'not_stored' } })
    expect(answers.filter(({ body }) => body.disposition === 'applied')).toHaveLength(good.length)
    for (const customer of customers) expect(await isActive(daemon, customer)).toBe(true)
    expect(await isActive(daemon, 'cus_poison')).toBe(false)
    expect(await storedEvents(daemon)).toHaveLength(good.length)
  })
})
