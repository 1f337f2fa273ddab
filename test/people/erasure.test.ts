import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { undatedAct } from '../../src/people/acts.js'
import { finishErasures } from '../../src/people/remove-stored.js'
import { loadChanges } from '../../src/store/changes.js'
import type { Database } from '../../src/store/schema.js'
import { erase, foundIn } from '../daemon/erasing.js'
import {
  call,
  type DaemonOptions,
  NOW,
  type RunningDaemon,
  runDaemon,
  send,
} from '../daemon/running-daemon.js'
import { storedEvents, storedUnder } from '../daemon/stored.js'
import { deliveryOf } from '../ingest/wire.js'
import { emptyStores } from '../store/temporary-store.js'
import { ENGINE } from '../world.js'

/** Nothing of this may be left anywhere once `cus_ada` is erased. */
const ADA = {
  email: 'ada.lovelace@example.com',
  name: 'Ada Augusta Lovelace',
  communityId: '80351110224678912',
  communityUsername: 'countess_of_lovelace',
  messengerId: '991234567890',
  messengerUsername: 'adas_telegraph',
  externalRef: 'crm-7261-ada',
  metadata: 'analytical-engine-seat-4',
}
const WORDS = Object.values(ADA)
const ADAS_OWN = { external_ref: ADA.externalRef, metadata: { seat: ADA.metadata } }
const BOB = { id: 'cus_bob', email: 'bob@example.com', name: 'Bob Babbage' }

const MINUTE = 60_000
const time = (minutes: number) => new Date(NOW - 60 * MINUTE + minutes * MINUTE).toISOString()

const delivery = (id: string, type: string, at: number, data: object) =>
  JSON.stringify({ id, type, created_at: time(at), data })

interface Told {
  readonly customer?: object
  readonly payment?: string
  readonly subscription?: string
  readonly product?: string
  readonly at?: number
}

/** An event of the current generation that tells all that one can tell of a person. */
function event(id: string, type: string, told: Told = {}): string {
  const { customer, payment = 'pay_ada', subscription, product = 'pro_1', at = 0 } = told
  return delivery(id, type, at, {
    ...(type.startsWith('subscription.') ? { id: subscription } : { id: payment, method: 'CARD' }),
    ...(subscription !== undefined && { subscription_id: subscription }),
    customer: customer ?? { id: 'cus_ada', ...ADA },
    product: { object: 'product', id: product },
    ...(customer === undefined && ADAS_OWN),
  })
}

const PAYOUTS = [{ id: 'po_1', payoutAmountCents: 900, currency: 'USD' }]
const BOBS = { id: 'pay_bob', payoutId: 'po_1', customerId: 'cus_bob', customerEmail: 'bob@example.com' }
const ADAS = { id: 'pay_ada', payoutId: 'po_1', priceCents: '500', customerId: 'cus_ada' }
/** Many payments at once, of several people. */
const SETTLED = delivery('evt_settled', 'PAYMENT_SETTLED', 30, {
  payouts: PAYOUTS,
  payments: [
    {
      ...ADAS,
      customerEmail: ADA.email,
      customerCommunityId: ADA.communityId,
      customerMessengerId: ADA.messengerId,
      externalRef: ADA.externalRef,
    },
    BOBS,
  ],
})

async function sendAll(daemon: RunningDaemon, ...bodies: readonly string[]): Promise<unknown[]> {
  const answers = []
  for (const body of bodies) answers.push(await (await send(daemon, body)).json())
  return answers
}

/** A daemon that knows a little history of two people, which names them in every way that events do. */
async function runToldDaemon(options: DaemonOptions = {}): Promise<RunningDaemon> {
  const daemon = await runDaemon(options)
  await sendAll(
    daemon,
    event('evt_1', 'payment.authorized', { subscription: 'sub_ada' }),
    event('evt_2', 'subscription.created', { subscription: 'sub_ada', at: 1 }),
    event('evt_3', 'payment.authorized', { payment: 'pay_once', product: 'pro_2', at: 2 }),
    event('evt_bob', 'payment.authorized', { customer: BOB, payment: 'pay_bob', at: 3 }),
    SETTLED,
    event('evt_future', 'payment.authorized').replace(time(0), 'soon'),
    `{"id": "evt_broken", "customer": "cus_ada", "email": "${ADA.email}"`,
  )
  const reason = `${ADA.name} asked for it`
  await call(daemon, 'POST', '/customers/cus_ada/grants', { productId: 'pro_3', reason })
  await call(daemon, 'PUT', '/customers/cus_ada/identities', { communityId: ADA.communityId })
  return daemon
}

async function access(daemon: RunningDaemon, customerId: string): Promise<Record<string, string>> {
  const { json } = await call(daemon, 'GET', `/entitlements/${customerId}`)
  const listed = json.entitlements as { productId: string; status: string }[]
  return Object.fromEntries(listed.map(({ productId, status }) => [productId, status]))
}

const sha256Of = (bytes: unknown) => createHash('sha256').update(String(bytes)).digest('hex')

describe('an erasure', () => {
  it.each(['before', 'after'])(
    'reaches what named nobody and came %s it, once a later event says that it was theirs',
    async (when) => {
      const daemon = await runDaemon()
      const [known, unknown] = [{ id: 'cus_ada' }, { email: ADA.email, name: ADA.name }]
      const held = [
        event('evt_paid', 'payment.succeeded', { customer: unknown, payment: 'pay_1' }),
        event('evt_begun', 'subscription.created', {
          customer: unknown,
          subscription: 'sub_2',
          payment: 'pay_2',
        }),
      ]
      await sendAll(daemon, event('evt_first', 'payment.authorized', { customer: known, payment: 'pay_0' }))
      if (when === 'before') await sendAll(daemon, ...held)
      await erase(daemon, 'cus_ada')
      if (when === 'after') await sendAll(daemon, ...held)
      await sendAll(
        daemon,
        event('evt_named', 'payment.authorized', { customer: known, payment: 'pay_1', at: 1 }),
        event('evt_renewed', 'subscription.renewed', { customer: known, subscription: 'sub_2', at: 1 }),
      )
      // What a minute's job does, too.
      await erase(daemon, 'cus_ada')
      for (const id of ['evt_paid', 'evt_begun']) {
        expect(await storedUnder(daemon, id)).toMatchObject([{ body: null, body_removed: 'erased' }])
      }
      expect(await foundIn(daemon.databaseFile, WORDS)).toEqual([])
    },
  )

  it('leaves no byte that tells who the person is, in the database nor in its log', async () => {
    const daemon = await runToldDaemon()
    expect(await foundIn(daemon.databaseFile, WORDS)).toEqual(WORDS)
    expect(await erase(daemon, 'cus_ada', { reason: 'asked for it' })).toMatchObject({
      status: 200,
      json: {
        customerId: 'cus_ada',
        environment: 'live',
        eventId: expect.stringMatching(/^man_[0-9a-f]{32}$/),
        finishedAt: expect.any(String),
      },
    })
    expect(await foundIn(daemon.databaseFile, WORDS)).toEqual([])
    expect(await foundIn(daemon.databaseFile, ['bob@example.com', 'Bob Babbage'])).toHaveLength(2)
    const { databaseFile } = await daemon.restart()
    expect(await foundIn(databaseFile, WORDS)).toEqual([])
  })

  it('ends every access that began before, and leaves what begins later', async () => {
    const daemon = await runToldDaemon()
    expect(await access(daemon, 'cus_ada')).toEqual({ pro_1: 'active', pro_2: 'active', pro_3: 'active' })
    const { json } = await erase(daemon, 'cus_ada')
    const revoked = { pro_1: 'revoked', pro_2: 'revoked', pro_3: 'revoked' }
    expect(await access(daemon, 'cus_ada')).toEqual(revoked)
    expect(await access(daemon, 'cus_bob')).toEqual({ pro_1: 'active' })
    const changes = await daemon.stored((db) => loadChanges(db, 'live', 0, 100))
    expect(changes.filter(({ cause }) => cause.eventId === json.eventId)).toMatchObject(
      Object.keys(revoked).map((productId) => ({ productId, after: { active: false, status: 'revoked' } })),
    )

    // A renewal of what the erasure ended brings nothing back; a purchase or a grant of its own does.
    const renewal = { subscription: 'sub_ada', payment: 'pay_2', at: 65 }
    await sendAll(daemon, event('evt_renewed', 'subscription.renewed', renewal))
    expect(await access(daemon, 'cus_ada')).toEqual(revoked)
    const purchase = { payment: 'pay_new', product: 'pro_2', at: 66 }
    await sendAll(daemon, event('evt_new', 'payment.authorized', purchase))
    await call(daemon, 'POST', '/customers/cus_ada/grants', { productId: 'pro_3', reason: 'a friend again' })
    expect(await access(daemon, 'cus_ada')).toEqual({ ...revoked, pro_2: 'active', pro_3: 'active' })
  })

  it('says so in the explanation, and of the customer', async () => {
    const daemon = await runToldDaemon()
    const { json: erased } = await erase(daemon, 'cus_ada')
    const { json } = await call(daemon, 'GET', '/entitlements/cus_ada/pro_1/explanation')
    const sentence = expect.stringContaining('was erased at')
    expect(json).toMatchObject({
      summary: expect.stringContaining('the customer was erased'),
      erasures: [{ eventId: erased.eventId, at: erased.erasedAt, sentence }],
    })
    const { json: known } = await call(daemon, 'GET', '/customers/cus_ada')
    expect(known).toMatchObject({
      erasedAt: erased.erasedAt,
      identities: { email: null, name: null, communityId: null },
      references: { externalRef: null, metadata: {}, all: [] },
    })
  })

  it('keeps what events did, and their hashes and lengths', async () => {
    const daemon = await runToldDaemon()
    const before = await storedEvents(daemon, { customer: 'cus_ada' })
    await erase(daemon, 'cus_ada')
    const after = await storedEvents(daemon, { customer: 'cus_ada' })
    for (const [i, { event_id, body_sha256, body, source_id, disposition, headers }] of before.entries()) {
      const same = { event_id, body_sha256, source_id, disposition, headers }
      expect(after[i]).toMatchObject({ ...same, body_bytes: body?.byteLength })
    }
    const { json } = await call(daemon, 'GET', '/events/evt_1')
    expect(json).toMatchObject({
      bodyBytes: before[0]?.body?.byteLength,
      bodyRemoved: { why: 'erased', at: expect.any(String) },
      normalized: { paymentId: 'pay_ada', customerId: 'cus_ada', customer: { email: null }, metadata: {} },
    })
    expect(await call(daemon, 'GET', '/events/evt_1/body')).toMatchObject({
      status: 410,
      json: { code: 'body_removed' },
    })
  })

  it('takes out of a body that names others too what is the person’s, and tells what is left and what came', async () => {
    const daemon = await runToldDaemon()
    await erase(daemon, 'cus_ada')
    const [row] = await storedUnder(daemon, 'evt_settled')
    const [came, left] = [sha256Of(SETTLED), sha256Of(row?.body)]
    for (const hash of ['', `?sha256=${came}`, `?sha256=${left}`]) {
      const { status, json } = await call(daemon, 'GET', `/events/evt_settled/body${hash}`)
      const data = { payouts: PAYOUTS, payments: [ADAS, BOBS] }
      expect({ status, json }).toEqual({ status: 200, json: { ...JSON.parse(SETTLED), data } })
    }
    const removed = { why: 'redacted', sha256: came, bytes: SETTLED.length }
    const told = { bodySha256: left, bodyBytes: row?.body?.length, bodyRemoved: removed }
    expect((await call(daemon, 'GET', '/events/evt_settled')).json).toMatchObject(told)
    const { items } = (await call(daemon, 'GET', '/events')).json as { items: { id: string }[] }
    expect(items.find(({ id }) => id === 'evt_settled')).toMatchObject(told)
  })

  it('is made once, however often it is asked for', async () => {
    const daemon = await runToldDaemon()
    const asked = await Promise.all([1, 2, 3].map(() => erase(daemon, 'cus_ada')))
    const again = await erase(daemon, 'cus_ada', { reason: 'asked once more' })
    for (const answer of asked) expect(answer).toEqual({ status: 200, json: again.json })
    const events = await storedEvents(daemon, { customer: 'cus_ada' })
    expect(events.filter(({ type }) => type === 'manual.erased')).toHaveLength(1)
  })

  it('of somebody never seen holds for what comes later', async () => {
    const daemon = await runDaemon()
    expect(await erase(daemon, 'cus_ada')).toMatchObject({ status: 200 })
    await sendAll(daemon, event('evt_late', 'payment.authorized', { at: 70 }), SETTLED)
    expect(await access(daemon, 'cus_ada')).toEqual({ pro_1: 'active' })
    expect(await foundIn(daemon.databaseFile, WORDS)).toEqual([])
    expect(await storedUnder(daemon, 'evt_late')).toMatchObject([
      { body: null, body_removed: 'erased', disposition: 'applied' },
    ])
    expect(await storedUnder(daemon, 'evt_settled')).toMatchObject([{ body_removed: 'redacted' }])
  })

  it('knows again what it has erased: by its id and hash a duplicate, and no conflict', async () => {
    const daemon = await runToldDaemon()
    await erase(daemon, 'cus_ada')
    const again = event('evt_1', 'payment.authorized', { subscription: 'sub_ada' })
    const duplicate = { disposition: 'duplicate' }
    expect(await sendAll(daemon, again, SETTLED)).toMatchObject([duplicate, duplicate])
    const conflicts = () => daemon.stored((db) => db.selectFrom('event_conflicts').selectAll().execute())
    expect(await conflicts()).toEqual([])
    expect(await sendAll(daemon, `${again} `)).toMatchObject([duplicate])
    expect(await conflicts()).toMatchObject([{ event_id: 'evt_1', body: null, body_removed: 'erased' }])
    expect(await foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('reaches other bodies that came under an id', async () => {
    const daemon = await runToldDaemon()
    await sendAll(daemon, event('evt_bob', 'payment.authorized', { at: 9 }))
    await erase(daemon, 'cus_ada')
    expect(await foundIn(daemon.databaseFile, WORDS)).toEqual([])
    const { json } = await call(daemon, 'GET', '/events/evt_bob')
    expect(json).toMatchObject({ bodyRemoved: null, otherBodies: [{ removed: { why: 'erased' } }] })
  })

  it('takes in events that name nobody in what they bought, later ones too, and those that name them in what another bought', async () => {
    const daemon = await runDaemon()
    const nameless = { id: 'pay_ada', customer_email: ADA.email, product: 'pro_1' }
    await sendAll(
      daemon,
      delivery('evt_nameless', 'checkout.succeeded', 1, nameless),
      event('evt_1', 'payment.authorized', { at: 2 }),
      event('evt_given', 'payment.authorized', { payment: 'pay_bob', at: 3 }),
      event('evt_bob', 'payment.succeeded', { customer: BOB, payment: 'pay_bob', at: 4 }),
    )
    await erase(daemon, 'cus_ada')
    await sendAll(daemon, delivery('evt_later', 'payment.refunded', 5, { ...nameless, ...ADAS_OWN }))
    for (const id of ['evt_nameless', 'evt_given', 'evt_later']) {
      expect(await storedUnder(daemon, id)).toMatchObject([{ body: null, body_removed: 'erased' }])
    }
    expect(await storedUnder(daemon, 'evt_bob')).toMatchObject([{ body_removed: null }])
    expect(await foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('knows a person by their id alone, in one environment: what else names them, or another id, stays', async () => {
    const daemon = await runDaemon()
    const metadata = { by: ADA.email, customer_id: 'cus_ada' }
    const bodies = {
      evt_unnamed: delivery('evt_unnamed', 'some.thing', 4, { to: ADA.email }),
      evt_invited: delivery('evt_invited', 'payment.authorized', 5, {
        id: 'pay_bob',
        customer: BOB,
        metadata,
      }),
      evt_other: event('evt_other', 'payment.authorized', { customer: { id: 'cus_ada2' }, payment: 'pay_9' }),
    }
    await sendAll(daemon, ...Object.values(bodies))
    const body = event('evt_sandbox', 'payment.authorized')
    await send(daemon, body, { endpoint: 'sandbox' })
    await erase(daemon, 'cus_ada')
    for (const [id, sent] of Object.entries({ ...bodies, evt_sandbox: body })) {
      expect((await storedUnder(daemon, id)).map((row) => String(row.body))).toEqual([sent])
    }
  })

  it('reaches every event of somebody with very many, in several transactions', async () => {
    const daemon = await runDaemon()
    const many = Array.from({ length: 450 }, (_, n) =>
      event(`evt_many_${n}`, 'payment.authorized', { at: n / 60 }),
    )
    await Promise.all(many.map((body) => send(daemon, body)))
    expect(await erase(daemon, 'cus_ada')).toMatchObject({ status: 200, json: { wasKnown: true } })
    const rows = await storedEvents(daemon, { customer: 'cus_ada' })
    expect(rows.filter((row) => row.body_removed === 'erased')).toHaveLength(450)
    const { json } = await call(daemon, 'GET', '/customers/cus_ada')
    expect(json).toMatchObject({ identities: { email: null } })
  })

  it('reaches what turns out to be theirs while it removes the rest', async () => {
    const [db, other = db] = (await emptyStores(ENGINE === 'sqlite' ? 1 : 2)) as [Kysely<Database>]
    const writerOn = (own: Kysely<Database>) =>
      createBatchWriter({ db: own, policy: () => DOCUMENTED_POLICY, clock: () => NOW })
    const [write, writeBeside] = [writerOn(db), writerOn(other)]
    const known = { id: 'cus_ada' }
    const told = { ...known, ...ADA }
    const bought = Array.from({ length: 20 }, (_, n) =>
      event(`evt_${n}`, 'payment.authorized', { customer: told, payment: `pay_${n}` }),
    )
    const nameless = { customer: { email: ADA.email, name: ADA.name }, payment: 'pay_late' }
    await write([...bought, event('evt_late', 'payment.succeeded', nameless)].map((body) => deliveryOf(body)))
    const erased = {
      id: 'man_1',
      type: 'manual.erased',
      customerId: 'cus_ada',
      actor: 'a',
      reason: null,
    } as const
    await write([{ environment: 'live', undated: undatedAct(erased) }])

    const named = event('evt_named', 'payment.authorized', { customer: known, payment: 'pay_late', at: 1 })
    let meanwhile: Promise<unknown> | undefined
    // Called once the first of their data is being removed: all that is known to be theirs is found by then.
    await finishErasures(db, () => {
      meanwhile ??= writeBeside([deliveryOf(named)])
      return NOW
    })
    await meanwhile
    await finishErasures(db, () => NOW)

    const rows = await db.selectFrom('events').select(['event_id', 'body', 'body_removed']).execute()
    expect(rows.find((row) => row.event_id === 'evt_late')).toMatchObject({
      body: null,
      body_removed: 'erased',
    })
    expect(rows.filter(({ body }) => body !== null && WORDS.some((word) => body.includes(word)))).toEqual([])
    for (const one of new Set([db, other])) await one.destroy()
  })

  it.runIf(ENGINE === 'sqlite')('is written down beside the database', async () => {
    const daemon = await runDaemon()
    const { json } = await erase(daemon, 'cus_ada', { reason: 'asked for it' })
    const lines = readFileSync(`${daemon.databaseFile}.erasures`, 'utf8').trim().split('\n')
    const act = { environment: 'live', customerId: 'cus_ada', actor: 'operator', reason: 'asked for it' }
    expect(lines.map((line) => JSON.parse(line))).toEqual([{ ...act, eventId: json.eventId, at: NOW }])
  })

  it('is not undone by what the daemon remembers, whatever comes next', async () => {
    const daemon = await runToldDaemon()
    await erase(daemon, 'cus_ada')
    await sendAll(
      daemon,
      delivery('evt_deleted', 'customer.deleted', 40, { object: 'customer', id: 'cus_ada' }),
      event('evt_4', 'payment.succeeded', { subscription: 'sub_ada', at: 41 }),
    )
    expect(await storedUnder(daemon, 'evt_4')).toMatchObject([{ body: null, disposition: 'applied' }])
    expect((await call(daemon, 'GET', '/customers/cus_ada')).json).toMatchObject({
      deletedAt: time(40),
      identities: { email: null, name: null },
      references: { all: [] },
    })
    expect(await foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('tells whether anything of theirs was stored, as often as it is asked', async () => {
    const daemon = await runToldDaemon()
    const eve = { object: 'customer', id: 'cus_eve', email: 'eve@example.com' }
    await sendAll(daemon, delivery('evt_updated', 'customer.updated', 40, eve))
    const seen = { cus_ada: true, cus_eve: true, cus_adda: false }
    for (const round of [1, 2]) {
      for (const [customerId, wasKnown] of Object.entries(seen)) {
        const { json } = await erase(daemon, customerId)
        expect({ round, customerId, wasKnown: json.wasKnown }).toEqual({ round, customerId, wasKnown })
      }
    }
  })

  it('lets no account be linked any more', async () => {
    const daemon = await runDaemon()
    await erase(daemon, 'cus_ada')
    const linked = { communityId: ADA.communityId }
    expect(await call(daemon, 'PUT', '/customers/cus_ada/identities', linked)).toMatchObject({
      status: 409,
      json: { code: 'customer_erased' },
    })
    expect(await foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })
})

describe('a customer whom the provider deletes', () => {
  const person = { object: 'customer', id: 'cus_ada', email: ADA.email }
  const deleted = delivery('evt_deleted', 'customer.deleted', 40, person)

  it('keeps what they have and are', async () => {
    const daemon = await runToldDaemon()
    await sendAll(daemon, deleted)
    const next = await daemon.restart()
    expect(await access(next, 'cus_ada')).toMatchObject({ pro_1: 'active' })
    expect(await foundIn(next.databaseFile, WORDS)).toEqual(WORDS)
  })

  it('is erased where the config says so', async () => {
    const daemon = await runToldDaemon({ config: { erasure: { onCustomerDeleted: true } } })
    await sendAll(daemon, deleted)
    const next = await daemon.restart()
    await expect.poll(() => foundIn(next.databaseFile, WORDS)).toEqual([])
    const erased = (await storedEvents(next)).find(({ type }) => type === 'manual.erased')
    const act = { actor: 'customer.deleted', customerId: 'cus_ada' }
    expect(JSON.parse(String(erased?.body))).toMatchObject(act)
    const msg = 'erased automatically: the provider has deleted the customer'
    expect(next.logged()).toContainEqual(expect.objectContaining({ eventId: erased?.event_id, msg }))
    expect(next.logged().map((line) => line.msg)).not.toContain('manual change')
    expect(await access(next, 'cus_ada')).toMatchObject({ pro_1: 'revoked' })
  })
})
