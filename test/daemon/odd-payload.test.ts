import { describe, expect, it } from 'vitest'
import { metric, warnings } from './observed.js'
import { ask, runDaemon, send } from './running-daemon.js'
import { storedEvents } from './stored.js'
import { CUSTOMER, PAYMENT, PRODUCT, wireEvent } from './wire-events.js'

/** Short, so that whatever is put in is there once. */
const PLAIN = JSON.stringify({
  id: 'evt_odd',
  type: 'payment.authorized',
  createdAt: '2026-03-01T11:00:00.000Z',
  data: { payment_id: PAYMENT, customer_id: CUSTOMER, product_id: PRODUCT },
})

/** Puts these members, as written, into the event itself and into its data. */
function withMembers(members: string): string {
  return PLAIN.replace('{', `{${members},`).replace('"data":{', `"data":{${members},`)
}

describe('members that nobody asked for', () => {
  it.each([
    ['__proto__', '"__proto__":{"polluted":true,"id":"evt_other","type":"unknown"}'],
    ['constructor', '"constructor":{"prototype":{"polluted":true}},"prototype":{"polluted":true}'],
    ['the names of methods', '"toString":null,"hasOwnProperty":1,"valueOf":{}'],
    ['metadata with such names', '"metadata":{"__proto__":"polluted","constructor":"polluted"}'],
    ['integers beyond 2^53', '"amount":9007199254740993,"block":123456789012345678901234567890'],
    ['numbers beyond any', '"gas":1e400,"fee":-1e-400'],
    ['what a later version might add', '"new_field":{"deep":[1,{"er":null}]},"":"","ключ":"значение"'],
  ])('are kept with the bytes, and change nothing: %s', async (_name, members) => {
    const daemon = await runDaemon()
    const body = withMembers(members)
    expect(await (await send(daemon, body)).json()).toMatchObject({ id: 'evt_odd', disposition: 'applied' })
    const [row] = await storedEvents(daemon)
    expect(row?.body?.toString()).toBe(body)

    const answer = await ask(daemon, `/entitlements/${CUSTOMER}`)
    expect(await answer.json()).toMatchObject({ entitlements: [{ productId: PRODUCT, active: true }] })
    expect(Reflect.ownKeys(Object.prototype)).not.toContain('polluted')
    expect(warnings(daemon)).toEqual([])
  })

  it('of a strange type are as good as missing', async () => {
    const daemon = await runDaemon()
    const odd = '"external_ref":7,"currency":[],"email":{},"tx_hash":false,"total_cycles":"many"'
    expect(await (await send(daemon, withMembers(odd))).json()).toMatchObject({ disposition: 'applied' })
  })
})

describe('a type that is not documented', () => {
  it.each([
    'payment.teleported',
    'invoice.paid',
    'PAYMENT_TELEPORTED',
    'weird type',
    '',
    null,
    7,
    '__proto__',
  ])('%j is kept and ignored', async (type) => {
    const daemon = await runDaemon()
    const body = JSON.stringify({ ...JSON.parse(PLAIN), type })
    expect(await (await send(daemon, body)).json()).toEqual({
      received: true,
      id: 'evt_odd',
      disposition: 'ignored',
    })
    expect(await storedEvents(daemon)).toMatchObject([
      { disposition: 'ignored', reason: null, body: Buffer.from(body) },
    ])
    expect(await (await ask(daemon, `/entitlements/${CUSTOMER}`)).json()).toMatchObject({ entitlements: [] })
  })
})

describe('the event header, which no signature covers', () => {
  it.each(['payment.refunded', 'PAYMENT_REFUNDED', 'payment.authorized, payment.refunded', '__proto__'])(
    'decides nothing, and is reported where it names another type: %s',
    async (type) => {
      const daemon = await runDaemon()
      const answer = await send(daemon, PLAIN, { headers: { 'X-Webhook-Event': type } })
      expect(await answer.json()).toMatchObject({ disposition: 'applied' })
      expect(await storedEvents(daemon)).toMatchObject([{ type: 'payment.authorized' }])
      expect(await metric(daemon, 'latchkey_header_mismatches_total{endpoint="live"}')).toBe(1)
      expect(warnings(daemon)).toMatchObject([{ eventId: 'evt_odd', type: 'payment.authorized' }])
    },
  )
})

describe('ids are taken literally everywhere', () => {
  it.each([
    `it's "quoted"`,
    `'; drop table events; --`,
    '<script>alert(1)</script>',
    '../../etc/passwd',
    '/',
    '%2e%2e%2f',
    'C:\\back\\slash',
    'a b?c=d&e#f',
    '{{7*7}}',
    '*',
    '__proto__',
    'constructor',
    'null',
    'ÅÅ',
    '𝕏 漢字 🔑',
  ])('%s', async (id) => {
    const daemon = await runDaemon()
    const told = { id, customer: id, product: id, payment: id }
    const receipt = await send(daemon, wireEvent('payment.authorized', told))
    expect(await receipt.json()).toEqual({ received: true, id, disposition: 'applied' })
    expect(await storedEvents(daemon)).toMatchObject([{ event_id: id, customer_id: id, payment_id: id }])

    const path = `/entitlements/${encodeURIComponent(id)}`
    const answer = await ask(daemon, path)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await answer.json()).toMatchObject({
      customerId: id,
      entitlements: [{ productId: id, active: true, sources: [{ kind: 'payment', id, eventId: id }] }],
    })
    expect(await (await ask(daemon, `${path}/${encodeURIComponent(id)}`)).json()).toMatchObject({
      productId: id,
      active: true,
    })
  })

  it('does not take ids for one another that look alike', async () => {
    const daemon = await runDaemon()
    await send(daemon, wireEvent('payment.authorized', { customer: 'Cus_1' }))
    for (const customer of ['cus_1', 'CUS_1', 'Cus_1 ', 'Cus_%', 'Cus__']) {
      const answer = await ask(daemon, `/entitlements/${encodeURIComponent(customer)}`)
      expect(await answer.json()).toMatchObject({ customerId: customer, entitlements: [] })
    }
  })

  it('shows a payment and a subscription of the same id as two sources', async () => {
    const daemon = await runDaemon()
    await send(daemon, wireEvent('payment.authorized', { payment: 'same' }))
    await send(
      daemon,
      wireEvent('payment.authorized', { payment: PAYMENT, subscription: 'same', minutes: 1 }),
    )
    expect(await (await ask(daemon, `/entitlements/${CUSTOMER}/${PRODUCT}`)).json()).toMatchObject({
      sources: [
        { kind: 'payment', id: 'same', active: true },
        { kind: 'subscription', id: 'same', active: true },
      ],
    })
  })
})
