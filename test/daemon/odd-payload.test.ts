import { describe, expect, it } from 'vitest'
import { metric, warnings } from './observed.js'
import { ask, runDaemon, send, sharedDaemon } from './running-daemon.js'
import { storedEvents, storedUnder } from './stored.js'
import { CUSTOMER, PAYMENT, PRODUCT, wireEvent } from './wire-events.js'

/** Short, so that whatever is put in is there once. */
const PLAIN = JSON.stringify({
  id: 'evt_odd',
  type: 'payment.authorized',
  createdAt: '2026-03-01T11:00:00.000Z',
  data: { payment_id: PAYMENT, customer_id: CUSTOMER, product_id: PRODUCT },
})

const shared = sharedDaemon()

let told = 0

/** The plain event of a customer and a payment of its own. */
function plainOfAnother() {
  told += 1
  const [id, customer] = [`evt_odd_${told}`, `cus_odd_${told}`]
  const data = { payment_id: `pay_odd_${told}`, customer_id: customer, product_id: PRODUCT }
  return { id, customer, plain: JSON.stringify({ ...JSON.parse(PLAIN), id, data }) }
}

/** Puts these members, as written, into the event itself and into its data. */
function withMembers(plain: string, members: string): string {
  return plain.replace('{', `{${members},`).replace('"data":{', `"data":{${members},`)
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
    const { id, customer, plain } = plainOfAnother()
    const warned = warnings(shared()).length
    const body = withMembers(plain, members)
    expect(await (await send(shared(), body)).json()).toMatchObject({ id, disposition: 'applied' })
    const [row] = await storedUnder(shared(), id)
    expect(row?.body?.toString()).toBe(body)

    const answer = await ask(shared(), `/entitlements/${customer}`)
    expect(await answer.json()).toMatchObject({ entitlements: [{ productId: PRODUCT, active: true }] })
    expect(Reflect.ownKeys(Object.prototype)).not.toContain('polluted')
    expect(warnings(shared()).slice(warned)).toEqual([])
  })

  it('of a strange type are as good as missing', async () => {
    const { plain } = plainOfAnother()
    const odd = '"external_ref":7,"currency":[],"email":{},"tx_hash":false,"total_cycles":"many"'
    expect(await (await send(shared(), withMembers(plain, odd))).json()).toMatchObject({
      disposition: 'applied',
    })
  })
})

describe('a type that is not documented', () => {
  it.each(['payment.teleported', 'PAYMENT_TELEPORTED', null])('%j is kept and ignored', async (type) => {
    const { id, customer, plain } = plainOfAnother()
    const body = JSON.stringify({ ...JSON.parse(plain), type })
    expect(await (await send(shared(), body)).json()).toEqual({
      received: true,
      id,
      disposition: 'ignored',
    })
    expect(await storedUnder(shared(), id)).toMatchObject([
      { disposition: 'ignored', reason: null, body: Buffer.from(body) },
    ])
    expect(await (await ask(shared(), `/entitlements/${customer}`)).json()).toMatchObject({
      entitlements: [],
    })
  })
})

describe('the event header, which no signature covers', () => {
  it.each(['payment.refunded', 'PAYMENT_REFUNDED', 'payment.authorized, payment.refunded', '__proto__'])(
    'decides nothing, and is reported where it names another type: %s',
    async (type) => {
      const { id, plain } = plainOfAnother()
      const mismatches = 'latchkey_header_mismatches_total{endpoint="live"}'
      const [counted, warned] = [(await metric(shared(), mismatches)) ?? 0, warnings(shared()).length]
      const answer = await send(shared(), plain, { headers: { 'X-Webhook-Event': type } })
      expect(await answer.json()).toMatchObject({ disposition: 'applied' })
      expect(await storedUnder(shared(), id)).toMatchObject([{ type: 'payment.authorized' }])
      expect(await metric(shared(), mismatches)).toBe(counted + 1)
      expect(warnings(shared()).slice(warned)).toMatchObject([{ eventId: id, type: 'payment.authorized' }])
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
    const named = { id, customer: id, product: id, payment: id }
    const receipt = await send(shared(), wireEvent('payment.authorized', named))
    expect(await receipt.json()).toEqual({ received: true, id, disposition: 'applied' })
    const stored = [{ event_id: id, customer_id: id, payment_id: id }]
    expect(await storedUnder(shared(), id)).toMatchObject(stored)
    expect(await storedEvents(shared(), { customer: id })).toMatchObject(stored)

    const path = `/entitlements/${encodeURIComponent(id)}`
    const answer = await ask(shared(), path)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await answer.json()).toMatchObject({
      customerId: id,
      entitlements: [{ productId: id, active: true, sources: [{ kind: 'payment', id, eventId: id }] }],
    })
    expect(await (await ask(shared(), `${path}/${encodeURIComponent(id)}`)).json()).toMatchObject({
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
