import { describe, expect, it, vi } from 'vitest'
import { NEVER_GRANTED } from '../../../src/entitlements/entitlement.js'
import { findMessages, type MessageFilter, type MessagePage } from '../../../src/store/message-log.js'
import { eventually } from '../../setup/eventually.js'
import { CHANGE, NOON, outboundStore, pass } from './outbound-store.js'
import { type Receiver, startReceiver, status } from './receiver.js'

const DAY = 86_400_000
const ALL = ['live', 'sandbox'] as const

const told = ({ received }: Receiver) => received.map(({ payload }) => payload.data.productId)
const arrive = (receiver: Receiver, count: number) =>
  eventually(() => expect(receiver.received).toHaveLength(count))

/** A store that two addresses are told of, and its log. */
async function logged() {
  const store = await outboundStore()
  const [app, crm] = [await startReceiver(), await startReceiver()]
  const addresses = [
    { id: 'app', url: app.url },
    { id: 'crm', url: crm.url, types: ['entitlement.revoked' as const], environments: ALL },
  ]
  const find = (filter: Partial<MessageFilter> = {}, page: Partial<MessagePage> = {}) =>
    findMessages(store.db, { environments: ALL, ...filter }, { order: 'newest first', limit: 100, ...page })
  const areDelivered = (count: number) =>
    eventually(async () => expect(await find({ status: 'delivered' })).toHaveLength(count))
  return { store, app, crm, addresses, find, areDelivered }
}

const LOST = { before: CHANGE.after, after: NEVER_GRANTED }

describe('several outbound webhooks', () => {
  it('wait for no other that is down, and keep an outage each', async () => {
    const { store, app, crm, addresses } = await logged()
    crm.answerWith(status(503, { 'retry-after': '3600' }))
    const outbound = await store.tell(...addresses)
    await store.change(LOST)
    await arrive(crm, 1)
    await store.change({ ...LOST, productId: 'pro_2' }, { ...LOST, productId: 'pro_3' })
    await arrive(app, 3)
    await eventually(async () =>
      expect(await outbound.status()).toMatchObject([
        { id: 'app', waiting: 0, lastDeliveredAt: NOON, lastError: null },
        {
          id: 'crm',
          waiting: 3,
          oldestWaitingAt: NOON,
          lastDeliveredAt: null,
          lastError: { at: NOON, reason: 'answered 503' },
        },
      ]),
    )
    expect(crm.received).toHaveLength(1)
    expect(crm.received[0]?.id).toBe(app.received[0]?.id)
    expect(crm.received[0]?.payload).toEqual(app.received[0]?.payload)
  })

  it('tell one environment nothing of how the messages of the other go', async () => {
    const { store, crm, addresses } = await logged()
    crm.answerWith(status(503))
    const outbound = await store.tell(...addresses)
    await store.change(LOST)
    await eventually(async () =>
      expect(await outbound.status(['live'])).toMatchObject([
        { id: 'app', lastDeliveredAt: NOON },
        { id: 'crm', waiting: 1, lastError: { reason: 'answered 503' } },
      ]),
    )
    expect(await outbound.status(['sandbox'])).toMatchObject([
      { id: 'app', waiting: 0, lastDeliveredAt: null, lastError: null },
      { id: 'crm', waiting: 0, lastDeliveredAt: null, lastError: null },
    ])
  })

  it('begin with what changes from then on, go on where they were, and let messages gather while disabled', async () => {
    const { store, app, crm, addresses } = await logged()
    const first = await store.tell({ id: 'app', url: app.url })
    await store.change({ productId: 'pro_1' })
    await arrive(app, 1)
    await first.stop()
    const [toApp, toCrm] = [
      { id: 'app', url: app.url },
      { id: 'crm', url: crm.url },
    ]
    const second = await store.tell(toCrm)
    await store.change({ productId: 'pro_2' })
    await arrive(crm, 1)
    await second.stop()
    const third = await store.tell(toApp, { ...toCrm, disabled: true })
    await store.change({ productId: 'pro_3' })
    await arrive(app, 3)
    await eventually(async () =>
      expect(await third.status()).toMatchObject([{}, { disabled: true, waiting: 1 }]),
    )
    await third.stop()
    // The filter that it has by now does not hold for what was queued before.
    await store.tell(toApp, addresses[1] ?? toCrm)
    await store.change({ productId: 'pro_4' }, { ...LOST, productId: 'pro_5' })
    await arrive(crm, 3)
    expect([told(app).slice(0, 3), told(crm)]).toEqual([
      ['pro_1', 'pro_2', 'pro_3'],
      ['pro_2', 'pro_3', 'pro_5'],
    ])
  })
})

describe('the log of outbound webhooks', () => {
  it('has every attempt, newest message first, by filter and page by page', async () => {
    const { store, app, addresses, find, areDelivered } = await logged()
    app.answerWith((res, message, count) => status([500, 410][count - 1] ?? 204)(res, message, count))
    const outbound = await store.tell(...addresses)
    await store.change({})
    await eventually(async () => expect((await find())[0]?.attempts).toHaveLength(1))
    expect(await find({ status: 'pending' })).toMatchObject([{ reason: null, nextAttemptAt: NOON + 1_000 }])
    pass(outbound, 60_000)
    await store.change({ ...LOST, customerId: 'cus_2' }, { ...LOST, environment: 'sandbox' })
    await areDelivered(3)
    const [, , second, first] = await find()
    const answer = { at: NOON, status: 500, error: null, ms: 0 }
    const id = app.received[0]?.id ?? ''
    expect(first).toEqual({
      cursor: Number(/^msg_\w+_(\d+)$/.exec(id)?.[1]),
      id,
      webhook: 'app',
      type: 'entitlement.granted',
      environment: 'live',
      customerId: 'cus_1',
      productId: 'pro_1',
      status: 'failed',
      reason: 'gone',
      queuedAt: NOON,
      nextAttemptAt: null,
      attempts: [answer, { ...answer, at: NOON + 60_000, status: 410 }],
    })
    expect(second).toMatchObject({ webhook: 'app', customerId: 'cus_2', type: 'entitlement.revoked' })
    const counts: readonly [Partial<MessageFilter>, number][] = [
      [{ environments: ['sandbox'] }, 1],
      [{ webhooks: ['crm'] }, 2],
      [{ customerId: 'cus_2' }, 2],
      [{ type: 'entitlement.granted' }, 1],
      [{ status: 'failed' }, 1],
      [{ ids: [id, 'msg_odd_2', 'odd'] }, 1],
      [{ from: CHANGE.at, to: CHANGE.at + 1 }, 4],
      [{ from: CHANGE.at + 1 }, 0],
      [{ to: CHANGE.at }, 0],
    ]
    for (const [filter, count] of counts)
      expect([filter, (await find(filter)).length]).toEqual([filter, count])
    for (const order of ['newest first', 'oldest first'] as const) {
      const whole = await find({}, { order })
      let after = whole[0]
      for (const next of whole.slice(1)) {
        ;[after] = await find({}, { order, limit: 1, ...(after && { after }) })
        expect(after).toEqual(next)
      }
    }
  })

  it('keeps the newest twenty attempts', async () => {
    const { store, app, addresses, find } = await logged()
    app.answerWith(status(500))
    const outbound = await store.tell(...addresses)
    await store.change({})
    for (let count = 1; count <= 22; count += 1) {
      await arrive(app, count)
      await eventually(async () => expect((await find())[0]?.attempts.at(-1)?.at).toBe(Date.now()))
      pass(outbound, 3_600_000)
    }
    expect((await find())[0]?.attempts).toHaveLength(20)
  })

  it('is sent again by ids or by time, with what came later, under the same ids, in order, to one address or to all', async () => {
    const { store, app, crm, addresses, find, areDelivered } = await logged()
    crm.answerWith((res, message, count) => status(count === 1 ? 410 : 204)(res, message, count))
    const outbound = await store.tell(...addresses)
    for (const n of [1, 2, 3]) await store.change({ ...LOST, at: NOON + n, productId: `pro_${n}` })
    await areDelivered(5)
    const ids = app.received.map(({ id }) => id)
    expect(await outbound.replay({ environments: ALL, ids: ids.slice(0, 1) })).toBe(6)
    await areDelivered(6)
    const since = { environments: ALL, from: NOON + 2 }
    expect(await outbound.replay({ ...since, environments: ['sandbox'] })).toBe(0)
    expect(await outbound.replay({ ...since, webhooks: ['app'], to: NOON + 3 })).toBe(2)
    await areDelivered(6)
    store.pause(true)
    vi.setSystemTime(NOON + DAY)
    expect(await outbound.replay(since)).toBe(4)
    expect(await outbound.replay(since)).toBe(0)
    expect(await outbound.status()).toMatchObject(addresses.map(() => ({ oldestWaitingAt: NOON + DAY })))
    store.pause(false)
    outbound.wake()
    await areDelivered(6)
    expect([told(app), told(crm)]).toEqual([
      [1, 2, 3, 1, 2, 3, 2, 3, 2, 3].map((n) => `pro_${n}`),
      [1, 2, 3, 1, 2, 3, 2, 3].map((n) => `pro_${n}`),
    ])
    for (const { received } of [app, crm]) {
      for (const { id, payload } of received) expect(id).toBe(ids[Number(payload.data.productId.at(-1)) - 1])
    }
    expect((await find({ webhooks: ['crm'] })).map(({ attempts }) => attempts.length)).toEqual([3, 3, 2])
  })

  it('ends with the newest change of a customer, even if that was on its way or held back at a replay', async () => {
    const { store, app, addresses, areDelivered } = await logged()
    const outbound = await store.tell(...addresses)
    await store.change({})
    await areDelivered(1)
    let answerSecond = () => {}
    app.answerWith((res, message, count) => {
      if (count === 2) answerSecond = () => status(204)(res, message, count)
      else status(204)(res, message, count)
    })
    const first = { environments: ALL, ids: app.received.map(({ id }) => id) }
    await store.change({ productId: 'pro_2' })
    await arrive(app, 2)
    expect(await outbound.replay(first)).toBe(1)
    answerSecond()
    await areDelivered(2)
    store.pause(true)
    await store.change({ productId: 'pro_3' })
    await eventually(async () => expect(await outbound.status()).toMatchObject([{ waiting: 1 }, {}]))
    expect(await outbound.replay(first)).toBe(2)
    store.pause(false)
    outbound.wake()
    await areDelivered(3)
    expect(told(app)).toEqual([1, 2, 1, 2, 1, 2, 3].map((n) => `pro_${n}`))
  })

  it('keeps thirty days, and what waits for longer', async () => {
    const { store, app, crm, addresses, find, areDelivered } = await logged()
    crm.answerWith((res, message, count) => status([410, 500][count - 1] ?? 204)(res, message, count))
    await store.tell(...addresses)
    await store.change({ ...LOST, at: NOON - DAY }, { ...LOST, at: NOON - DAY, productId: 'pro_2' })
    await store.change({ ...LOST, productId: 'pro_3' })
    await arrive(app, 3)
    await areDelivered(3)
    await eventually(async () => expect((await find({ status: 'failed' })).length).toBe(1))
    expect(await store.writeSync('expireMessages', NOON - DAY)).toBe(0)
    expect(await store.writeSync('expireMessages', NOON - DAY + 1)).toBe(3)
    expect(await store.writeSync('expireMessages', NOON - DAY + 1)).toBe(0)
    expect((await find()).map(({ webhook, productId }) => [webhook, productId])).toEqual([
      ['crm', 'pro_3'],
      ['app', 'pro_3'],
      ['crm', 'pro_2'],
    ])
  })
})

it('a test message is sent past the queue and the log, says what it is, and what was answered, also by a stop', async () => {
  const { store, app, crm, addresses, find } = await logged()
  crm.answerWith(status(500))
  store.pause(true)
  const [toApp, toCrm] = addresses
  const outbound = await store.tell({ url: app.url, ...toApp, disabled: true }, { url: crm.url, ...toCrm })
  const taken = await outbound.test('app', 'entitlement.revoked')
  expect(taken).toEqual({ id: app.received[0]?.id, delivered: true, status: 204, error: null, ms: 0 })
  expect(taken?.id).toMatch(/^msg_test_[0-9a-f]{16}$/)
  expect(app.received[0]?.payload).toMatchObject({
    type: 'entitlement.revoked',
    test: true,
    data: { environment: 'live', customerId: 'cus_test', before: { active: true }, after: { active: false } },
  })
  expect(await outbound.test('crm', 'entitlement.granted', 'sandbox')).toMatchObject({
    delivered: false,
    status: 500,
  })
  expect(await outbound.test('odd', 'entitlement.granted')).toBe(null)
  app.answerWith(() => {})
  const unanswered = outbound.test('app', 'entitlement.granted')
  await arrive(app, 2)
  await outbound.endTests()
  expect(await unanswered).toMatchObject({
    delivered: false,
    status: null,
    error: expect.stringContaining('stopped'),
  })
  expect(await find()).toEqual([])
  expect(await outbound.status()).toMatchObject([{ lastDeliveredAt: null }, { lastError: null }])
})
