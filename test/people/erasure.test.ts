import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { loadChanges } from '../../src/store/changes.js'
import { call, erase, eraseAsSupport, foundIn, runErasingDaemon } from '../daemon/erasing.js'
import { NOW, type RunningDaemon, send } from '../daemon/running-daemon.js'
import { storedEvents, storedUnder } from '../daemon/stored.js'

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

const MINUTE = 60_000
const time = (minutes: number) => new Date(NOW - 60 * MINUTE + minutes * MINUTE).toISOString()

interface Told {
  readonly customer?: object | string | null
  readonly payment?: string
  readonly subscription?: string
  readonly product?: string
  readonly at?: number
}

/** An event of the current generation that tells all that one can tell of a person. */
function event(id: string, type: string, told: Told = {}): string {
  const { customer = { id: 'cus_ada', ...ADA }, payment = 'pay_ada', product = 'pro_1', at = 0 } = told
  return JSON.stringify({
    id,
    type,
    created_at: time(at),
    livemode: true,
    data: {
      object: type.split('.')[0],
      ...(type.startsWith('subscription.') ? { id: told.subscription } : { id: payment, method: 'CARD' }),
      ...(told.subscription === undefined ? {} : { subscription_id: told.subscription }),
      ...(customer === null ? {} : { customer }),
      product: { object: 'product', id: product },
      ...(told.customer === undefined ? ADAS_OWN : {}),
    },
  })
}

/** Many payments at once, of several people. */
const settled = (id: string) =>
  JSON.stringify({
    id,
    type: 'PAYMENT_SETTLED',
    createdAt: time(30),
    data: {
      payouts: [{ id: 'po_1', payoutAmountCents: 900, currency: 'USD' }],
      payments: [
        {
          id: 'pay_ada',
          payoutId: 'po_1',
          priceCents: '500',
          customerId: 'cus_ada',
          customerEmail: ADA.email,
          customerCommunityId: ADA.communityId,
          customerMessengerId: ADA.messengerId,
          externalRef: ADA.externalRef,
        },
        { id: 'pay_bob', payoutId: 'po_1', customerId: 'cus_bob', customerEmail: 'bob@example.com' },
      ],
    },
  })

const BOB = { id: 'cus_bob', email: 'bob@example.com', name: 'Bob Babbage' }

async function sendAll(daemon: RunningDaemon, ...bodies: readonly string[]): Promise<unknown[]> {
  const answers = []
  for (const body of bodies) answers.push(await (await send(daemon, body)).json())
  return answers
}

/** A little history of two people, which names them in every way that events do. */
async function tell(daemon: RunningDaemon): Promise<void> {
  await sendAll(
    daemon,
    event('evt_1', 'payment.authorized', { subscription: 'sub_ada' }),
    event('evt_2', 'subscription.created', { subscription: 'sub_ada', payment: 'pay_ada', at: 1 }),
    event('evt_3', 'payment.authorized', { payment: 'pay_once', product: 'pro_2', at: 2 }),
    event('evt_bob', 'payment.authorized', { customer: BOB, payment: 'pay_bob', at: 3 }),
    settled('evt_settled'),
    JSON.stringify({
      id: 'evt_future',
      type: 'payment.authorized',
      created_at: 'soon',
      data: { customer: { id: 'cus_ada', ...ADA } },
    }),
    `{"id": "evt_broken", "customer": "cus_ada", "email": "${ADA.email}"`,
  )
  await call(daemon, 'POST', '/customers/cus_ada/grants', {
    productId: 'pro_3',
    reason: `${ADA.name} asked for it`,
  })
  await call(daemon, 'PUT', '/customers/cus_ada/identities', { communityId: ADA.communityId })
}

const access = async (daemon: RunningDaemon, customerId: string) => {
  const { json } = await call(daemon, 'GET', `/entitlements/${customerId}`)
  return (json.entitlements as { productId: string; status: string }[]).map(({ productId, status }) => [
    productId,
    status,
  ])
}

describe('an erasure', () => {
  it('leaves no byte that tells who the person is, in the database nor in its log', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual(WORDS)
    const { status, json } = await erase(daemon, 'cus_ada', { reason: 'asked for it' })
    expect(status).toBe(200)
    expect(json).toMatchObject({
      customerId: 'cus_ada',
      environment: 'live',
      eventId: expect.stringMatching(/^man_[0-9a-f]{32}$/),
      finishedAt: expect.any(String),
    })
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
    expect(foundIn(daemon.databaseFile, ['bob@example.com', 'Bob Babbage'])).toHaveLength(2)
    const { databaseFile } = await daemon.restart()
    expect(foundIn(databaseFile, WORDS)).toEqual([])
  })

  it('ends every access that began before, and leaves what begins later', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    expect(await access(daemon, 'cus_ada')).toEqual([
      ['pro_1', 'active'],
      ['pro_2', 'active'],
      ['pro_3', 'active'],
    ])
    const { json } = await erase(daemon, 'cus_ada')
    const revoked = ['pro_1', 'pro_2', 'pro_3'].map((productId) => [productId, 'revoked'])
    expect(await access(daemon, 'cus_ada')).toEqual(revoked)
    expect(await access(daemon, 'cus_bob')).toEqual([['pro_1', 'active']])
    const changes = await daemon.stored((db) => loadChanges(db, 'live', 0, 100))
    expect(changes.filter(({ cause }) => cause.eventId === json.eventId)).toMatchObject(
      revoked.map(([productId]) => ({ productId, after: { active: false, status: 'revoked' } })),
    )

    // A renewal of what the erasure ended brings nothing back; a purchase of its own does.
    await sendAll(
      daemon,
      event('evt_renewed', 'subscription.renewed', { subscription: 'sub_ada', payment: 'pay_2', at: 65 }),
    )
    expect(await access(daemon, 'cus_ada')).toEqual(revoked)
    await sendAll(
      daemon,
      event('evt_new', 'payment.authorized', { payment: 'pay_new', product: 'pro_2', at: 66 }),
    )
    expect(await access(daemon, 'cus_ada')).toEqual([
      ['pro_1', 'revoked'],
      ['pro_2', 'active'],
      ['pro_3', 'revoked'],
    ])
    await call(daemon, 'POST', '/customers/cus_ada/grants', { productId: 'pro_3', reason: 'a friend again' })
    expect(await access(daemon, 'cus_ada')).toContainEqual(['pro_3', 'active'])
  })

  it('says so in the explanation, and of the customer', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    const { json: erased } = await erase(daemon, 'cus_ada')
    const { json } = await call(daemon, 'GET', '/entitlements/cus_ada/pro_1/explanation')
    expect(json).toMatchObject({
      summary: expect.stringContaining('the customer was erased'),
      erasures: [
        { eventId: erased.eventId, at: erased.erasedAt, sentence: expect.stringContaining('was erased at') },
      ],
    })
    const { json: known } = await call(daemon, 'GET', '/customers/cus_ada')
    expect(known).toMatchObject({
      erasedAt: erased.erasedAt,
      identities: { email: null, name: null, communityId: null },
      references: { externalRef: null, metadata: {}, all: [] },
    })
  })

  it('keeps what events did, and their hashes and lengths', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    const before = await storedEvents(daemon, { customer: 'cus_ada' })
    await erase(daemon, 'cus_ada')
    const after = await storedEvents(daemon, { customer: 'cus_ada' })
    for (const [i, row] of before.entries()) {
      expect(after[i]).toMatchObject({
        event_id: row.event_id,
        body_sha256: row.body_sha256,
        body_bytes: row.body?.byteLength,
        source_id: row.source_id,
        disposition: row.disposition,
        headers: row.headers,
      })
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

  it('takes out of a body that names others too what is the person’s, and no more', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    await erase(daemon, 'cus_ada')
    const [row] = await storedUnder(daemon, 'evt_settled')
    expect(row).toMatchObject({ body_removed: 'redacted', body_bytes: settled('evt_settled').length })
    const { status, json } = await call(daemon, 'GET', '/events/evt_settled/body')
    expect(status).toBe(200)
    expect(json).toEqual({
      ...JSON.parse(settled('evt_settled')),
      data: {
        payouts: [{ id: 'po_1', payoutAmountCents: 900, currency: 'USD' }],
        payments: [
          { id: 'pay_ada', payoutId: 'po_1', priceCents: '500', customerId: 'cus_ada' },
          { id: 'pay_bob', payoutId: 'po_1', customerId: 'cus_bob', customerEmail: 'bob@example.com' },
        ],
      },
    })
  })

  it('tells the hash and the length of what is left of a body, and names those of what came', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    const [came] = await storedUnder(daemon, 'evt_settled')
    await erase(daemon, 'cus_ada')
    const [row] = await storedUnder(daemon, 'evt_settled')
    const sha256 = createHash('sha256').update(String(row?.body)).digest('hex')
    const told = {
      bodySha256: sha256,
      bodyBytes: row?.body?.length,
      bodyRemoved: { why: 'redacted', sha256: came?.body_sha256, bytes: came?.body?.length },
    }
    expect(sha256).not.toBe(came?.body_sha256)
    expect((await call(daemon, 'GET', '/events/evt_settled')).json).toMatchObject(told)
    const { json } = await call(daemon, 'GET', '/events')
    const listed = { ...told, bodyRemoved: expect.objectContaining(told.bodyRemoved) }
    expect(json.items).toContainEqual(expect.objectContaining(listed))
    for (const hash of [sha256, came?.body_sha256]) {
      expect(await call(daemon, 'GET', `/events/evt_settled/body?sha256=${hash}`)).toMatchObject({
        status: 200,
        json: { id: 'evt_settled' },
      })
    }
  })

  it('is made once, however often it is asked for', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    const asked = await Promise.all([1, 2, 3].map(() => erase(daemon, 'cus_ada')))
    const again = await erase(daemon, 'cus_ada', { reason: 'asked once more' })
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200])
    for (const { json } of asked) expect(json).toEqual(again.json)
    const events = await storedEvents(daemon, { customer: 'cus_ada' })
    expect(events.filter(({ type }) => type === 'manual.erased')).toHaveLength(1)
  })

  it('of somebody never seen holds for what comes later', async () => {
    const daemon = await runErasingDaemon()
    expect(await erase(daemon, 'cus_ada')).toMatchObject({ status: 200 })
    await sendAll(daemon, event('evt_late', 'payment.authorized', { at: 70 }), settled('evt_settled'))
    expect(await access(daemon, 'cus_ada')).toEqual([['pro_1', 'active']])
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
    expect(await storedUnder(daemon, 'evt_late')).toMatchObject([
      { body: null, body_removed: 'erased', disposition: 'applied' },
    ])
    expect(await storedUnder(daemon, 'evt_settled')).toMatchObject([{ body_removed: 'redacted' }])
  })

  it('knows again what it has erased: by its id and hash a duplicate, and no conflict', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    await erase(daemon, 'cus_ada')
    const again = event('evt_1', 'payment.authorized', { subscription: 'sub_ada' })
    expect(await sendAll(daemon, again, settled('evt_settled'))).toMatchObject([
      { disposition: 'duplicate' },
      { disposition: 'duplicate' },
    ])
    const conflicts = () => daemon.stored((db) => db.selectFrom('event_conflicts').selectAll().execute())
    expect(await conflicts()).toEqual([])
    expect(await sendAll(daemon, `${again} `)).toMatchObject([{ disposition: 'duplicate' }])
    expect(await conflicts()).toMatchObject([{ event_id: 'evt_1', body: null, body_removed: 'erased' }])
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('reaches other bodies that came under an id', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    await sendAll(daemon, event('evt_bob', 'payment.authorized', { at: 9 }))
    await erase(daemon, 'cus_ada')
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
    const { json } = await call(daemon, 'GET', '/events/evt_bob')
    expect(json).toMatchObject({ bodyRemoved: null, otherBodies: [{ removed: { why: 'erased' } }] })
  })

  it('takes in events that name nobody in what they bought, later ones too, and those that name them in what another bought', async () => {
    const daemon = await runErasingDaemon()
    await sendAll(
      daemon,
      JSON.stringify({
        id: 'evt_nameless',
        type: 'checkout.succeeded',
        created_at: time(1),
        data: { id: 'pay_ada', customer_email: ADA.email, product: 'pro_1' },
      }),
      event('evt_1', 'payment.authorized', { at: 2 }),
      event('evt_given', 'payment.authorized', { payment: 'pay_bob', at: 3 }),
      event('evt_bob', 'payment.succeeded', { customer: BOB, payment: 'pay_bob', at: 4 }),
    )
    await erase(daemon, 'cus_ada')
    await sendAll(
      daemon,
      JSON.stringify({
        id: 'evt_nameless_later',
        type: 'payment.refunded',
        created_at: time(5),
        data: { id: 'pay_ada', customer_email: ADA.email, metadata: { seat: ADA.metadata } },
      }),
    )
    for (const id of ['evt_nameless', 'evt_given', 'evt_nameless_later']) {
      expect(await storedUnder(daemon, id)).toMatchObject([{ body: null, body_removed: 'erased' }])
    }
    expect(await storedUnder(daemon, 'evt_bob')).toMatchObject([{ body_removed: null }])
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('knows a person by their id alone: what names them in words, in what is of others or of nobody, stays', async () => {
    const daemon = await runErasingDaemon()
    const toNobody = { id: 'evt_unnamed', type: 'some.thing', created_at: time(4), data: { to: ADA.email } }
    const invited = {
      id: 'evt_invited',
      type: 'payment.authorized',
      created_at: time(5),
      data: {
        id: 'pay_bob',
        customer: BOB,
        product: 'pro_1',
        metadata: { by: ADA.email, customer_id: 'cus_ada' },
      },
    }
    await tell(daemon)
    await sendAll(daemon, JSON.stringify(toNobody), JSON.stringify(invited))
    await erase(daemon, 'cus_ada')
    for (const told of [toNobody, invited]) {
      expect((await call(daemon, 'GET', `/events/${told.id}/body`)).json).toEqual(told)
    }
  })

  it('reaches every event of somebody with very many, in several transactions', async () => {
    const daemon = await runErasingDaemon()
    const many = Array.from({ length: 450 }, (_, n) =>
      event(`evt_many_${n}`, 'payment.authorized', { at: n / 60 }),
    )
    await Promise.all(many.map((body) => send(daemon, body)))
    expect(await erase(daemon, 'cus_ada')).toMatchObject({ status: 200, json: { wasKnown: true } })
    const rows = await storedEvents(daemon, { customer: 'cus_ada' })
    expect(rows.filter((row) => row.body_removed === 'erased')).toHaveLength(450)
    expect((await call(daemon, 'GET', '/customers/cus_ada')).json).toMatchObject({
      identities: { email: null },
    })
  })

  it('of one leaves another alone whose id begins the same', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    await sendAll(
      daemon,
      event('evt_other', 'payment.authorized', {
        customer: { id: 'cus_ada2', name: 'Ada II' },
        payment: 'pay_9',
      }),
      '{"id": "evt_torn", "customer": "cus_ada2"',
    )
    await erase(daemon, 'cus_ada')
    expect(await storedUnder(daemon, 'evt_other')).toMatchObject([{ body_removed: null }])
    expect(foundIn(daemon.databaseFile, ['"evt_torn", "customer": "cus_ada2"'])).toHaveLength(1)
  })

  it('holds in one environment', async () => {
    const daemon = await runErasingDaemon()
    const body = event('evt_1', 'payment.authorized').replace('"livemode":true', '"livemode":false')
    await send(daemon, body, { endpoint: 'sandbox' })
    await erase(daemon, 'cus_ada')
    expect(await storedUnder(daemon, 'evt_1')).toMatchObject([{ environment: 'sandbox', body_removed: null }])
  })

  it('is written down beside the database, for its owner alone', async () => {
    const daemon = await runErasingDaemon()
    const { json } = await erase(daemon, 'cus_ada', { reason: 'asked for it' })
    const file = `${daemon.databaseFile}.erasures`
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      {
        environment: 'live',
        customerId: 'cus_ada',
        eventId: json.eventId,
        at: NOW,
        actor: 'privacy',
        reason: 'asked for it',
      },
    ])
  })

  it('is not undone by what the daemon remembers, whatever comes next', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    await erase(daemon, 'cus_ada')
    await sendAll(
      daemon,
      JSON.stringify({
        id: 'evt_deleted',
        type: 'customer.deleted',
        created_at: time(40),
        data: { object: 'customer', id: 'cus_ada' },
      }),
      event('evt_4', 'payment.succeeded', { subscription: 'sub_ada', at: 41 }),
    )
    expect(await storedUnder(daemon, 'evt_4')).toMatchObject([{ body: null, disposition: 'applied' }])
    expect((await call(daemon, 'GET', '/customers/cus_ada')).json).toMatchObject({
      deletedAt: time(40),
      identities: { email: null, name: null },
      references: { all: [] },
    })
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('tells whether anything of theirs was stored, as often as it is asked', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    const updated = {
      id: 'evt_updated',
      type: 'customer.updated',
      created_at: time(40),
      data: { object: 'customer', id: 'cus_eve', email: 'eve@example.com' },
    }
    await sendAll(daemon, JSON.stringify(updated))
    const seen = { cus_ada: true, cus_eve: true, cus_adda: false }
    for (const round of [1, 2]) {
      for (const [customerId, wasKnown] of Object.entries(seen)) {
        const { json } = await erase(daemon, customerId)
        expect({ round, customerId, wasKnown: json.wasKnown }).toEqual({ round, customerId, wasKnown })
      }
    }
  })

  it('lets no account be linked any more', async () => {
    const daemon = await runErasingDaemon()
    await erase(daemon, 'cus_ada')
    const linked = { communityId: ADA.communityId }
    expect(await call(daemon, 'PUT', '/customers/cus_ada/identities', linked)).toMatchObject({
      status: 409,
      json: { code: 'customer_erased' },
    })
    expect(foundIn(daemon.databaseFile, WORDS)).toEqual([])
  })

  it('is for admins, of people whose id can be one, with no more than a reason', async () => {
    const daemon = await runErasingDaemon()
    expect(await eraseAsSupport(daemon, 'cus_ada')).toMatchObject({ status: 403 })
    expect(await erase(daemon, '%00')).toMatchObject({ status: 400, json: { code: 'invalid_request' } })
    expect(await erase(daemon, 'cus_ada', { why: 'x' })).toMatchObject({ status: 400 })
    expect(await erase(daemon, 'cus_ada', { reason: ' ' })).toMatchObject({
      status: 400,
      json: { errors: [{ path: 'reason' }] },
    })
    expect(await call(daemon, 'DELETE', '/customers/cus_ada?environment=sandbox')).toMatchObject({
      status: 403,
    })
    expect(await storedEvents(daemon)).toEqual([])
  })
})

describe('a customer whom the provider deletes', () => {
  const deleted = JSON.stringify({
    id: 'evt_deleted',
    type: 'customer.deleted',
    created_at: time(40),
    data: { object: 'customer', id: 'cus_ada', email: ADA.email },
  })

  it('keeps what they have and are', async () => {
    const daemon = await runErasingDaemon()
    await tell(daemon)
    await sendAll(daemon, deleted)
    const next = await daemon.restart()
    expect(await access(next, 'cus_ada')).toContainEqual(['pro_1', 'active'])
    expect(foundIn(next.databaseFile, WORDS)).toEqual(WORDS)
  })

  it('is erased where the config says so', async () => {
    const daemon = await runErasingDaemon({ config: { erasure: { onCustomerDeleted: true } } })
    await tell(daemon)
    await sendAll(daemon, deleted)
    const next = await daemon.restart()
    await expect.poll(() => foundIn(next.databaseFile, WORDS)).toEqual([])
    const erased = (await storedEvents(next)).find(({ type }) => type === 'manual.erased')
    expect(JSON.parse(String(erased?.body))).toMatchObject({
      actor: 'customer.deleted',
      customerId: 'cus_ada',
    })
    expect(next.logged()).toContainEqual(
      expect.objectContaining({
        eventId: erased?.event_id,
        msg: 'erased by itself: the provider has deleted the customer',
      }),
    )
    expect(next.logged().map(({ msg }) => msg)).not.toContain('done by hand')
    expect(await access(next, 'cus_ada')).toContainEqual(['pro_1', 'revoked'])
  })
})
