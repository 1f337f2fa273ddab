import { describe, expect, it } from 'vitest'
import type { Receipt } from '../../src/ingest/delivery.js'
import { metric, warnings } from './observed.js'
import { ask, LIVE_SECRET, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { storedEvents } from './stored.js'
import { CUSTOMER, PAYMENT, PRODUCT, wireEvent } from './wire-events.js'

const FIRST = wireEvent('payment.authorized', { id: 'evt_same' })
const OTHER = wireEvent('payment.authorized', { id: 'evt_same', customer: 'cus_other' })

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

  it('is stored once, however many copies come at once', async () => {
    const daemon = await runDaemon()
    const receipts = await Promise.all(Array.from({ length: 20 }, () => receipt(daemon, FIRST)))
    expect(receipts.map(({ disposition }) => disposition).sort()).toEqual([
      'applied',
      ...Array(19).fill('duplicate'),
    ])
    expect(await storedEvents(daemon)).toMatchObject([{ event_id: 'evt_same', deliveries: 20 }])
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

    const alarm = { level: 50, endpoint: 'live', eventId: 'evt_same' }
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

  it('stands apart too when both come at once: one is stored, the other kept', async () => {
    const daemon = await runDaemon()
    await Promise.all([receipt(daemon, FIRST), receipt(daemon, OTHER)])
    const bodies = [...(await storedEvents(daemon)), ...(await conflicts(daemon))].map(({ body }) =>
      body.toString(),
    )
    expect(bodies.sort()).toEqual([FIRST, OTHER].sort())
    const active = [await isActive(daemon, CUSTOMER), await isActive(daemon, 'cus_other')]
    expect(active.filter(Boolean)).toHaveLength(1)
  })
})

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

  it('keep no good one from being applied', async () => {
    const daemon = await runDaemon()
    await receipt(daemon, FIRST)
    const customers = Array.from({ length: 60 }, (_, index) => `cus_good_${index}`)
    const good = customers.map((customer) => {
      return wireEvent('payment.authorized', { customer, payment: `${PAYMENT}_${customer}` })
    })
    const mixed = good.flatMap((body, index) => [body, BAD[index % BAD.length] ?? ''])
    const receipts = await Promise.all(mixed.map((body) => receipt(daemon, body)))

    expect(receipts.filter(({ disposition }) => disposition === 'applied')).toHaveLength(good.length)
    for (const customer of customers) expect(await isActive(daemon, customer)).toBe(true)
    const bodies = new Set((await storedEvents(daemon)).map(({ body }) => body.toString()))
    for (const body of [...good, ...BAD.slice(0, -1)]) expect(bodies).toContain(body)
    expect(warnings(daemon).filter(({ msg }) => /could not|bug/.test(String(msg)))).toEqual([])
  })
})
