import { describe, expect, it } from 'vitest'
import { call, erase, foundIn, runErasingDaemon } from './erasing.js'
import { NOW, type RunningDaemon, send } from './running-daemon.js'
import { storedEvents, storedUnder } from './stored.js'

const ADA = {
  email: 'ada.lovelace@example.com',
  name: 'Ada Augusta Lovelace',
  communityId: '80351110224678912',
  communityUsername: 'countess_of_lovelace',
  messengerId: '991234567890',
  phone: '+44 20 7946 0123',
}
/** Nothing of this may be left anywhere once `cus_ada` is erased. */
const WORDS = Object.values(ADA)
const BOB = { id: 'cus_bob', email: 'bob@example.com', name: 'Bob Babbage' }

const time = (minutes: number) => new Date(NOW - 3_600_000 + minutes * 60_000).toISOString()

function event(id: string, data: object, type = 'payment.authorized'): string {
  return JSON.stringify({
    id,
    type,
    created_at: time(1),
    livemode: true,
    data: { object: 'payment', id: `pay_of_${id}`, method: 'CARD', product: 'pro_1', ...data },
  })
}

const ofAda = event('evt_ada', { customer: { id: 'cus_ada', ...ADA } })

/** Of Bob, who writes about Ada; `maximum` and the like are about nobody. */
const ofBob = (id: string, told: object = {}) =>
  event(id, {
    customer: BOB,
    metadata: {
      seat: 'maximum-4',
      invited_by: ADA.email,
      back: `https://example.com/?from=${encodeURIComponent(ADA.email)}`,
      ...told,
    },
  })

/** Told while what is stored is looked through, when they are known by their very words. */
const IN_WORDS = {
  dedication: `For ${ADA.name}, with love`,
  phone_of: ADA.phone,
  nick: ADA.communityUsername,
}

const settled = (id: string) =>
  JSON.stringify({
    id,
    type: 'PAYMENT_SETTLED',
    createdAt: time(30),
    data: {
      payments: [
        { id: 'pay_1', priceCents: '500', customerId: null, customerEmail: ADA.email, city: 'London' },
        { id: 'pay_2', priceCents: '700', customerId: null, customerMessengerId: ADA.messengerId },
        { id: 'pay_bob', priceCents: '900', customerId: 'cus_bob', customerEmail: BOB.email, city: 'Paris' },
      ],
    },
  })

const SETTLED_LEFT = {
  payments: [
    { id: 'pay_1', priceCents: '500', customerId: null },
    { id: 'pay_2', priceCents: '700', customerId: null },
    { id: 'pay_bob', priceCents: '900', customerId: 'cus_bob', customerEmail: BOB.email, city: 'Paris' },
  ],
}

async function sendAll(daemon: RunningDaemon, ...bodies: readonly (string | Buffer)[]): Promise<void> {
  for (const body of bodies) expect((await send(daemon, body)).status).toBe(200)
}

const bodyOf = async (daemon: RunningDaemon, id: string) =>
  (await call(daemon, 'GET', `/events/${id}/body`)).json as { readonly data: Record<string, unknown> }

/** As any daemon is that erased somebody of whom it knew all. */
async function erased(): Promise<RunningDaemon> {
  const daemon = await runErasingDaemon()
  await sendAll(daemon, ofAda)
  expect(await erase(daemon, 'cus_ada')).toMatchObject({ status: 200 })
  return daemon
}

describe('what is told of others', () => {
  it('keeps all but what tells of the erased person, in the bodies and in what was read from them', async () => {
    const daemon = await runErasingDaemon()
    await sendAll(daemon, ofAda, ofBob('evt_bob', IN_WORDS), settled('evt_settled'))
    await call(daemon, 'POST', '/customers/cus_bob/grants', {
      productId: 'pro_2',
      reason: `a friend of ${ADA.email}`,
    })
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual(WORDS)
    await erase(daemon, 'cus_ada')
    expect(foundIn(daemon.databaseFile, [...WORDS, encodeURIComponent(ADA.email)])).toEqual([])

    expect((await bodyOf(daemon, 'evt_bob')).data).toEqual({
      object: 'payment',
      id: 'pay_of_evt_bob',
      method: 'CARD',
      product: 'pro_1',
      customer: BOB,
      metadata: { seat: 'maximum-4' },
    })
    expect((await bodyOf(daemon, 'evt_settled')).data).toEqual(SETTLED_LEFT)
    expect((await call(daemon, 'GET', '/customers/cus_bob')).json).toMatchObject({
      identities: { email: { value: BOB.email }, name: { value: BOB.name } },
      references: { all: [{ name: 'metadata.seat', value: 'maximum-4' }] },
    })
    expect((await call(daemon, 'GET', '/events/evt_bob')).json).toMatchObject({
      bodyRemoved: { why: 'redacted' },
      normalized: { customer: { email: BOB.email }, metadata: { seat: 'maximum-4' } },
    })
    const [grant] = (await storedEvents(daemon)).filter(({ type }) => type === 'manual.granted')
    expect(JSON.parse(String(grant?.normalized))).toMatchObject({ customerId: 'cus_bob', reason: null })
  })

  it('keeps no account or phone number, whatever it is joined to', async () => {
    const daemon = await runErasingDaemon()
    const joined = {
      [`k_${ADA.communityId}`]: 'x',
      user: `user_${ADA.communityId}`,
      tg: `id${ADA.messengerId}x`,
      call: `on ${ADA.phone}, please`,
      dialled: '00442079460123',
      longer: `1${ADA.messengerId}`,
    }
    const asNumber = (id: string) => ofBob(id, { n: 0 }).replace('"n":0', `"n":${ADA.communityId}`)
    const cutOff = [`{"tg":"tg_${ADA.messengerId}"`, `{"call":"${ADA.phone}"`]
    await sendAll(daemon, ofAda, ofBob('evt_bob', joined), asNumber('evt_number'), ...cutOff)
    await erase(daemon, 'cus_ada')
    const unread = cutOff.map((body) => body.replace(':', ': '))
    await sendAll(daemon, ofBob('evt_late', joined), asNumber('evt_late_number'), ...unread)
    for (const id of ['evt_bob', 'evt_late']) {
      expect((await bodyOf(daemon, id)).data).toMatchObject({ customer: BOB })
      expect((await bodyOf(daemon, id)).data.metadata).toEqual({ seat: 'maximum-4', longer: joined.longer })
    }
    for (const id of ['evt_number', 'evt_late_number']) {
      expect((await bodyOf(daemon, id)).data.metadata).toEqual({ seat: 'maximum-4' })
    }
    expect(foundIn(daemon.databaseFile, [ADA.communityId, ADA.phone, joined.dialled])).toEqual([])
    expect(foundIn(daemon.databaseFile, [`id${ADA.messengerId}`, `tg_${ADA.messengerId}`])).toEqual([])
  })

  it('reads the same again, and access stands', async () => {
    const daemon = await runErasingDaemon()
    await sendAll(daemon, ofAda, ofBob('evt_bob', IN_WORDS), settled('evt_settled'))
    await erase(daemon, 'cus_ada')
    const { json } = await call(daemon, 'POST', '/replays', { filter: {}, dryRun: false })
    await expect
      .poll(async () => (await call(daemon, 'GET', `/replays/${json.id}`)).json)
      .toMatchObject({ state: 'done', summary: { changed: 0, gains: 0, losses: 0 } })
    expect((await call(daemon, 'GET', '/entitlements/cus_bob/pro_1')).json).toMatchObject({ active: true })
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('keeps a text that only holds a like word', async () => {
    const daemon = await runErasingDaemon()
    const metadata = {
      plan: 'Maximum',
      about: 'the grace period',
      to: `x${ADA.email}`,
      n: `1${ADA.messengerId}`,
    }
    const like = event('evt_like', { customer: BOB, metadata })
    await sendAll(daemon, event('evt_max', { customer: { id: 'cus_ada', name: 'Max', email: ADA.email } }))
    await sendAll(daemon, event('evt_grace', { customer: { id: 'cus_ada', ...ADA, name: 'Grace' } }), like)
    await erase(daemon, 'cus_ada')
    expect(await storedUnder(daemon, 'evt_like')).toMatchObject([{ body_removed: null }])
    expect((await bodyOf(daemon, 'evt_like')).data).toMatchObject({ metadata })
  })
})

describe('a delivery after the erasure', () => {
  it.each([
    ['an address alone', { customer_email: ADA.email.toUpperCase() }],
    ['an address within a text', { receipt: `sent to <${ADA.email}>.` }],
    ['an account alone', { customer_community_id: ADA.communityId }],
    ['a phone number, written otherwise', { customer: { phone: '+442079460123' } }],
  ])('that names nobody by id, and shows %s, is stored without its body', async (_what, shown) => {
    const daemon = await erased()
    await sendAll(daemon, event('evt_late', shown))
    expect(await storedUnder(daemon, 'evt_late')).toMatchObject([{ body: null, body_removed: 'erased' }])
    const next = await daemon.restart()
    await sendAll(next, event('evt_later', shown))
    expect(await storedUnder(next, 'evt_later')).toMatchObject([{ body: null, body_removed: 'erased' }])
    expect(foundIn(next.databaseFile, [...WORDS, ADA.email.toUpperCase(), '442079460123'])).toEqual([])
  })

  it('of others is stored without what tells of the person', async () => {
    const daemon = await erased()
    await sendAll(daemon, ofBob('evt_bob', { dedication: ADA.name }), settled('evt_settled'))
    expect((await bodyOf(daemon, 'evt_bob')).data).toMatchObject({
      customer: BOB,
      metadata: { seat: 'maximum-4' },
    })
    expect((await bodyOf(daemon, 'evt_settled')).data).toEqual(SETTLED_LEFT)
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it.each([
    ['the escapes of JSON', '{"to": "ada.lovelace\\u0040example.com"'],
    ['the escapes of addresses', 'email=ada.lovelace%40example.com&x=1'],
    ['UTF-16', Buffer.from(`{"to": "${ADA.email}"`, 'utf16le')],
    ['the id in escapes', '{"customer": "\\u0063us_ada"'],
  ])('that can not be read keeps nothing where it names them in %s', async (_how, body) => {
    const daemon = await erased()
    await sendAll(daemon, body)
    const quarantined = (await storedEvents(daemon)).filter(
      ({ disposition }) => disposition === 'quarantined',
    )
    expect(quarantined).toMatchObject([{ body: null, body_removed: 'erased' }])
  })

  it('that came before the erasure, and can not be read, keeps nothing either', async () => {
    const daemon = await runErasingDaemon()
    const bodies = [
      '{"customer": "\\u0063us_ada"',
      'to=ada.lovelace%40example.com',
      '{"customer": "\\u0063us_ada2"',
    ]
    await sendAll(daemon, ofAda, ...bodies, Buffer.from('"cus_ada', 'utf16le').swap16())
    await erase(daemon, 'cus_ada')
    const left = (await storedEvents(daemon)).flatMap(({ disposition, body }) =>
      disposition === 'quarantined' ? [body?.toString() ?? null] : [],
    )
    expect(left).toEqual([null, null, bodies[2], null])
  })

  it('of a new customer with the same address is that customer’s own, and is kept', async () => {
    const daemon = await erased()
    const back = { id: 'cus_ada_again', ...ADA }
    await sendAll(daemon, event('evt_back', { customer: back, metadata: { login: ADA.email } }))
    expect(await storedUnder(daemon, 'evt_back')).toMatchObject([
      { body_removed: null, disposition: 'applied' },
    ])
    expect((await call(daemon, 'GET', '/customers/cus_ada_again')).json).toMatchObject({
      identities: { email: { value: ADA.email }, communityId: { value: ADA.communityId } },
    })
    const { json } = await call(daemon, 'POST', '/entitlements/lookup', { email: ADA.email })
    expect(json).toMatchObject({ items: [{ customerId: 'cus_ada_again', entitlements: [{ active: true }] }] })
    // Until they are erased as well.
    await erase(daemon, 'cus_ada_again')
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('tells nobody who reads the files of one store what another store knows', async () => {
    const stores = [await erased(), await erased()]
    const known = stores.map(async ({ stored }) => {
      const [row] = await stored((db) => db.selectFrom('erasures').select('fingerprints').execute())
      const [made] = JSON.parse(String(row?.fingerprints)) as readonly { readonly known: readonly string[] }[]
      return made?.known ?? []
    })
    const [first = [], second = []] = await Promise.all(known)
    expect(first.length).toBeGreaterThan(4)
    expect(first.filter((one) => second.includes(one))).toEqual([])
  })
})
