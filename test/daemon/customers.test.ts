import { describe, expect, it } from 'vitest'
import { API_KEY, ask, call, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { type Told, timeOf, wireEvent } from './wire-events.js'

const ANN = {
  id: 'cus_ann',
  email: 'Ann@Example.com',
  name: 'Ann',
  communityId: '101',
  communityUsername: 'ann#1',
  messengerId: '901',
  messengerUsername: 'ann_m',
}

/** One event, stored: whoever reads after it sees what follows from it. */
async function tell(daemon: RunningDaemon, type: string, told: Told = {}): Promise<void> {
  const endpoint = told.environment === 'sandbox' ? 'sandbox' : 'live'
  expect((await send(daemon, wireEvent(type, told), { endpoint })).status).toBe(200)
}

/** A one-time payment of its own for each customer. */
function pay(daemon: RunningDaemon, customer: string, told: Told = {}): Promise<void> {
  return tell(daemon, 'payment.authorized', { customer, payment: `pay_${customer}`, ...told })
}

/** Access that ends at an instant by itself, told in minutes. */
async function subscribeUntil(daemon: RunningDaemon, customer: string, minutes: number): Promise<void> {
  const told = { customer, subscription: `sub_${customer}`, payment: null }
  await tell(daemon, 'subscription.created', told)
  const expires = { expires_at: new Date(timeOf(minutes)).toISOString(), cancel_at_period_end: true }
  await tell(daemon, 'subscription.canceled', { ...told, minutes: 1, data: expires })
}

function post(daemon: RunningDaemon, path: string, body: unknown): Promise<Response> {
  return fetch(`${daemon.url}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
}

interface Listed {
  readonly items: readonly { readonly customerId: string }[]
  readonly pagination: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

async function idsOf(answer: Promise<Response>): Promise<readonly string[]> {
  const { items } = (await (await answer).json()) as Listed
  return items.map(({ customerId }) => customerId)
}

describe('GET /entitlements?externalRef=', () => {
  it("finds every customer whose events carry the merchant's reference, the older ones too", async () => {
    const daemon = await runDaemon()
    await pay(daemon, 'cus_b', { data: { externalRef: 'user 7' } })
    await pay(daemon, 'cus_a', { data: { externalRef: 'user 7' } })
    await tell(daemon, 'payment.settled', {
      customer: 'cus_a',
      payment: 'pay_cus_a',
      minutes: 1,
      data: { externalRef: 'user 8' },
    })
    await pay(daemon, 'cus_c', { environment: 'sandbox', data: { externalRef: 'user 7' } })

    const answer = await ask(daemon, '/entitlements?externalRef=user%207')
    const alone = await (await ask(daemon, '/entitlements/cus_a')).json()
    expect(await answer.json()).toEqual({
      items: [alone, expect.objectContaining({ customerId: 'cus_b' })],
      pagination: { nextCursor: null, hasMore: false },
    })
    expect(await idsOf(ask(daemon, '/entitlements?externalRef=user%208'))).toEqual(['cus_a'])
    expect(await idsOf(ask(daemon, '/entitlements?externalRef=user%207&environment=sandbox'))).toEqual([
      'cus_c',
    ])
    expect(await idsOf(ask(daemon, '/entitlements?externalRef=user'))).toEqual([])
  })

  it('reads the metadata that the config names instead', async () => {
    const daemon = await runDaemon({ config: { identity: { ref: 'metadata.userId' } } })
    await pay(daemon, 'cus_a', { data: { externalRef: 'r1', metadata: { userId: 77, team: 't1' } } })
    expect(await idsOf(ask(daemon, '/entitlements?externalRef=77'))).toEqual(['cus_a'])
    expect(await idsOf(ask(daemon, '/entitlements?externalRef=r1'))).toEqual([])
    expect(await idsOf(ask(daemon, '/entitlements?externalRef=t1'))).toEqual([])
  })

  it('goes on at its cursor, and spares what the caller holds', async () => {
    const daemon = await runDaemon()
    for (const customer of ['cus_ü/2 🔑', 'cus_a', 'cus_ü/1 🔑']) {
      await pay(daemon, customer, { data: { externalRef: 'team' } })
    }
    const first = await ask(daemon, '/entitlements?externalRef=team&limit=2')
    const { items, pagination } = (await first.json()) as Listed
    expect(items.map(({ customerId }) => customerId)).toEqual(['cus_a', 'cus_ü/1 🔑'])
    const rest = ask(daemon, `/entitlements?externalRef=team&limit=1&cursor=${pagination.nextCursor}`)
    expect(await (await rest).json()).toMatchObject({
      items: [{ customerId: 'cus_ü/2 🔑' }],
      pagination: { nextCursor: null, hasMore: false },
    })

    const held = { 'If-None-Match': first.headers.get('etag') ?? '' }
    await pay(daemon, 'cus_other')
    daemon.setNow(NOW + 1_000)
    expect((await ask(daemon, '/entitlements?externalRef=team&limit=2', held)).status).toBe(304)
    await tell(daemon, 'payment.refunded', { customer: 'cus_a', payment: 'pay_cus_a', minutes: 2 })
    expect((await ask(daemon, '/entitlements?externalRef=team&limit=2', held)).status).toBe(200)
  })
})

describe('POST /entitlements/lookup', () => {
  it('finds customers by the newest detail known, an email in any letter case', async () => {
    const daemon = await runDaemon()
    await pay(daemon, ANN.id, { data: { customer: ANN } })
    await pay(daemon, 'cus_bob', { data: { customer: { id: 'cus_bob', email: 'bob@example.com' } } })
    for (const lookup of [{ email: 'ann@eXample.com' }, { communityId: '101' }, { messengerId: '901' }]) {
      const answer = (await (await post(daemon, '/entitlements/lookup', lookup)).json()) as Listed
      expect(answer).toEqual({
        items: [await (await ask(daemon, '/entitlements/cus_ann')).json()],
        pagination: { nextCursor: null, hasMore: false },
      })
    }
    const moved = { ...ANN, email: 'ann@new.example' }
    await tell(daemon, 'payment.settled', {
      customer: ANN.id,
      payment: 'pay_cus_ann',
      minutes: 1,
      data: { customer: moved },
    })
    expect(await idsOf(post(daemon, '/entitlements/lookup', { email: ANN.email }))).toEqual([])
    expect(await idsOf(post(daemon, '/entitlements/lookup', { email: moved.email }))).toEqual(['cus_ann'])
    const elsewhere = '/entitlements/lookup?environment=sandbox'
    expect(await idsOf(post(daemon, elsewhere, { email: moved.email }))).toEqual([])
  })

  it('leaves no personal data in the log', async () => {
    const daemon = await runDaemon()
    await pay(daemon, ANN.id, { data: { customer: ANN } })
    await post(daemon, '/entitlements/lookup', { email: ANN.email })
    await post(daemon, '/entitlements/lookup', { email: ANN.email, more: ANN.communityUsername })
    await ask(daemon, '/customers/cus_ann')
    const said = JSON.stringify(daemon.logged()).toLowerCase()
    expect(said).not.toContain('ann@example.com')
    expect(said).not.toContain('ann#1')
  })
})

describe('POST /entitlements/check', () => {
  it('answers each check in its place', async () => {
    const daemon = await runDaemon()
    const odd = 'cus_"ü\\/🔑'
    await pay(daemon, odd, { data: { externalRef: 'u1' } })
    await subscribeUntil(daemon, 'cus_ending', 120)
    await pay(daemon, 'cus_back')
    await tell(daemon, 'payment.refunded', { customer: 'cus_back', payment: 'pay_cus_back', minutes: 5 })

    const gold = { productId: 'pro_gold' }
    const answer = await post(daemon, '/entitlements/check', {
      checks: [
        { customerId: 'cus_ending', ...gold },
        { externalRef: 'nobody', ...gold },
        { customerId: odd, ...gold },
        { customerId: odd, productId: 'pro_other' },
        { customerId: 'cus_back', ...gold },
        { customerId: 'cus_never', ...gold },
        { externalRef: 'u1', ...gold },
        { customerId: odd, ...gold },
      ],
    })
    const paid = { customerId: odd, ...gold, active: true, until: null }
    expect(await answer.json()).toEqual({
      results: [
        { customerId: 'cus_ending', ...gold, active: true, until: new Date(timeOf(120)).toISOString() },
        { customerId: null, ...gold, active: false, until: null },
        paid,
        { ...paid, productId: 'pro_other', active: false, unknown: true },
        { customerId: 'cus_back', ...gold, active: false, until: new Date(timeOf(5)).toISOString() },
        { customerId: 'cus_never', ...gold, active: false, until: null },
        paid,
        paid,
      ],
    })
  })

  it('lets the customer whose access lasts longest answer for a reference that several have', async () => {
    const daemon = await runDaemon()
    const data = { externalRef: 'shared' }
    for (const customer of ['cus_1', 'cus_2', 'cus_3']) {
      await tell(daemon, 'payment.failed', { customer, payment: `pay_ref_${customer}`, data })
    }
    const check = { checks: [{ externalRef: 'shared', productId: 'pro_gold' }] }
    const answered = async () => (await (await post(daemon, '/entitlements/check', check)).json()) as unknown
    const result = (customerId: string, active: boolean, until: string | null) => ({
      results: [{ customerId, productId: 'pro_gold', active, until }],
    })
    expect(await answered()).toMatchObject(result('cus_1', false, null))
    await subscribeUntil(daemon, 'cus_2', 120)
    expect(await answered()).toEqual(result('cus_2', true, new Date(timeOf(120)).toISOString()))
    await pay(daemon, 'cus_3')
    expect(await answered()).toEqual(result('cus_3', true, null))
  })
})

describe('GET /customers/:customerId', () => {
  it('tells everything that is known, since when and by which event', async () => {
    const daemon = await runDaemon()
    await pay(daemon, ANN.id, {
      id: 'evt_first',
      data: { customer: ANN, externalRef: 'u1', metadata: { team: 'red', seats: 3 } },
    })
    await tell(daemon, 'payment.failed', {
      id: 'evt_second',
      customer: ANN.id,
      payment: 'pay_failed',
      minutes: 3,
      data: { customer: { id: ANN.id, name: 'Ann B.' }, externalRef: 'u2', metadata: { team: 'blue' } },
    })
    await tell(daemon, 'customer.deleted', {
      id: 'evt_gone',
      customer: ANN.id,
      minutes: 9,
      data: { email: null, name: null },
    })

    const answer = await ask(daemon, '/customers/cus_ann')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const first = (value: string) => ({ value, since: instant(0), eventId: 'evt_first' })
    const second = (value: string) => ({ value, since: instant(3), eventId: 'evt_second' })
    expect(await answer.json()).toMatchObject({
      customerId: 'cus_ann',
      environment: 'live',
      identities: {
        email: first(ANN.email),
        name: second('Ann B.'),
        communityId: first('101'),
        communityUsername: first('ann#1'),
        messengerId: first('901'),
        messengerUsername: first('ann_m'),
      },
      references: {
        externalRef: second('u2'),
        metadata: { team: second('blue'), seats: first('3') },
        all: [
          { name: 'externalRef', value: 'u1' },
          { name: 'externalRef', value: 'u2' },
          { name: 'metadata.seats', value: '3' },
          { name: 'metadata.team', value: 'blue' },
          { name: 'metadata.team', value: 'red' },
        ],
      },
      deletedAt: instant(9),
      blocks: [],
      sources: [
        { productId: 'pro_gold', id: 'pay_cus_ann', kind: 'payment', active: true, eventId: 'evt_first' },
        { productId: null, id: 'pay_failed', kind: 'payment', active: false, since: null, eventId: null },
      ],
    })
  })

  it('shows a source once for each product that it gave', async () => {
    const daemon = await runDaemon()
    const told = { customer: 'cus_up', subscription: 'sub_up', payment: null }
    await tell(daemon, 'subscription.created', told)
    await tell(daemon, 'subscription.updated', { ...told, product: 'pro_max', minutes: 5 })
    const { sources } = (await (await ask(daemon, '/customers/cus_up')).json()) as { sources: unknown[] }
    expect(sources).toMatchObject([
      { id: 'sub_up', productId: 'pro_gold', active: false, reason: 'moved', until: instant(5) },
      { id: 'sub_up', productId: 'pro_max', active: true, since: instant(5), until: null },
    ])
  })
})

describe('a customer who is blocked', () => {
  it('has no access by any answer, and is told of the block', async () => {
    const daemon = await runDaemon()
    await pay(daemon, 'cus_a', { data: { externalRef: 'u1' } })
    const blocked = await call(daemon, 'PUT', '/customers/cus_a/blocks', { reason: 'shared an account' })
    expect(blocked.status).toBe(200)

    expect(await idsOf(ask(daemon, '/products/pro_gold/customers'))).toEqual([])
    const checks = [{ externalRef: 'u1', productId: 'pro_gold' }]
    expect(await (await post(daemon, '/entitlements/check', { checks })).json()).toMatchObject({
      results: [{ customerId: 'cus_a', active: false }],
    })
    expect(await (await ask(daemon, '/customers/cus_a')).json()).toMatchObject({
      blocks: [
        { productId: null, since: new Date(NOW).toISOString(), until: null, reason: 'shared an account' },
      ],
    })
  })
})

describe('GET /products', () => {
  it('tells what each gives and how many have access now, of those that are no longer configured too', async () => {
    const roles = [
      { adapter: 'discord', guildId: '1', roleId: '10' },
      { adapter: 'discord', guildId: '1', roleId: '20', environment: 'sandbox' },
    ]
    const products = {
      pro_none: {},
      pro_gold: { name: 'Gold', features: ['export'], targets: roles },
    }
    const sync = { discord: { botToken: 'token', apiUrl: 'http://127.0.0.1:9' } }
    const daemon = await runDaemon({ config: { products, sync } })
    for (const customer of ['cus_a', 'cus_b']) await pay(daemon, customer)
    await pay(daemon, 'cus_other', { product: 'pro_other' })
    await pay(daemon, 'cus_sandbox', { environment: 'sandbox' })
    await pay(daemon, 'cus_back')
    await tell(daemon, 'payment.refunded', { customer: 'cus_back', payment: 'pay_cus_back', minutes: 5 })

    const gold = { productId: 'pro_gold', name: 'Gold', configured: true, features: ['export'] }
    const none = { productId: 'pro_none', name: null, configured: true, features: [], targets: [], active: 0 }
    expect(await (await ask(daemon, '/products')).json()).toEqual({
      environment: 'live',
      products: [
        none,
        { ...gold, targets: ['discord:1:10'], active: 2 },
        { ...none, productId: 'pro_other', configured: false, active: 1 },
      ],
    })
    expect(await (await ask(daemon, '/products?environment=sandbox')).json()).toEqual({
      environment: 'sandbox',
      products: [none, { ...gold, targets: ['discord:1:20'], active: 1 }],
    })
  })
})

describe('GET /products/:productId/customers', () => {
  it('tells who has access now, and on the ground of what', async () => {
    const daemon = await runDaemon()
    await pay(daemon, 'cus_b')
    await pay(daemon, 'cus_a')
    await pay(daemon, 'cus_other', { product: 'pro_other' })
    await pay(daemon, 'cus_sandbox', { environment: 'sandbox' })
    await pay(daemon, 'cus_back')
    await tell(daemon, 'payment.refunded', { customer: 'cus_back', payment: 'pay_cus_back', minutes: 5 })

    const { items, pagination } = (await (await ask(daemon, '/products/pro_gold/customers')).json()) as Listed
    const own = await (await ask(daemon, '/entitlements/cus_a/pro_gold')).json()
    expect(own).toMatchObject(items[0] ?? {})
    expect(items).toEqual([
      expect.objectContaining({ customerId: 'cus_a', active: true }),
      expect.objectContaining({ customerId: 'cus_b', active: true }),
    ])
    expect(pagination).toEqual({ nextCursor: null, hasMore: false })
    expect(await idsOf(ask(daemon, '/products/pro_none/customers'))).toEqual([])
  })

  it('leaves out whose access has ended since it was last written down, and still fills its pages', async () => {
    const daemon = await runDaemon()
    for (const customer of ['cus_1', 'cus_2', 'cus_4']) await subscribeUntil(daemon, customer, 90)
    for (const customer of ['cus_3', 'cus_5', 'cus_6']) await pay(daemon, customer)
    const list = '/products/pro_gold/customers?limit=2'
    expect(await idsOf(ask(daemon, list))).toEqual(['cus_1', 'cus_2'])

    daemon.setNow(timeOf(90))
    const { items, pagination } = (await (await ask(daemon, list)).json()) as Listed
    expect(items.map(({ customerId }) => customerId)).toEqual(['cus_3', 'cus_5'])
    expect(pagination.hasMore).toBe(true)
    const rest = (await (await ask(daemon, `${list}&cursor=${pagination.nextCursor}`)).json()) as Listed
    expect(rest.items).toMatchObject([{ customerId: 'cus_6' }])
    expect(rest.pagination).toEqual({ nextCursor: null, hasMore: false })
  })
})

function instant(minutes: number): string {
  return new Date(timeOf(minutes)).toISOString()
}
