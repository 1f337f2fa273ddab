import type { ServerResponse } from 'node:http'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { postMessage } from '../../../src/sync/outbound/message.js'
import type { WebhookStatus } from '../../../src/sync/outbound/outbound.js'
import { eventually } from '../../setup/eventually.js'
import { addressOf, NOON, outboundStore, pass } from './outbound-store.js'
import { type AnswerMessage, NEXT_SECRET, type Receiver, SECRET, startReceiver, status } from './receiver.js'

const MINUTE = 60_000
const DAY = 86_400_000

/** What came, as `customer/product`. */
const told = ({ received }: Receiver) =>
  received.map(({ payload }) => `${payload.data.customerId}/${payload.data.productId}`)

const arrive = (receiver: Receiver, count: number) =>
  eventually(() => expect(receiver.received).toHaveLength(count))

/** A store whose changes are told to a receiver that answers so. */
async function telling(answer?: AnswerMessage) {
  const store = await outboundStore()
  const receiver = await startReceiver()
  if (answer !== undefined) receiver.answerWith(answer)
  const outbound = await store.tell(receiver)
  return {
    store,
    receiver,
    outbound,
    stateIs: (state: Partial<WebhookStatus>) =>
      eventually(async () => expect(await outbound.status()).toMatchObject([state])),
  }
}

describe('the outbound webhook', () => {
  it('sends a message that is replayed, though an attempt by a former leader from before is answered late', async () => {
    const {
      store,
      receiver,
      outbound: former,
    } = await telling((res, _, count) => {
      if (count === 1) late.resolve(res)
      else res.writeHead(204).end()
    })
    const late = Promise.withResolvers<ServerResponse>()
    await store.change({})
    const leader = await store.tell(receiver)
    await arrive(receiver, 2)
    const waiting = (count: number) =>
      eventually(async () => expect(await leader.status()).toMatchObject([{ waiting: count }]))
    await waiting(0)
    store.pause(true)
    pass(leader, MINUTE)
    expect(await leader.replay({ environments: ['live'] })).toBe(1)
    const answer = await late.promise
    answer.writeHead(204).end()
    await former.stop()
    await waiting(1)
    store.pause(false)
    leader.wake()
    await arrive(receiver, 3)
    await waiting(0)
  })

  it('sends no message that may not leave any more, and sends it once messages may leave again', async () => {
    const { store, receiver, outbound, stateIs } = await telling()
    store.holdBack(true)
    await store.change({})
    await eventually(() => expect(store.heldBack()).toBe(1))
    store.holdBack(false)
    expect(receiver.received).toEqual([])
    pass(outbound, MINUTE)
    await arrive(receiver, 1)
    await stateIs({ waiting: 0, lastError: null })
  })

  it('posts a change as the change log has it, signed as the library verifies', async () => {
    const { store, receiver, stateIs } = await telling()
    await store.change({})
    await arrive(receiver, 1)
    const [message] = receiver.received
    const [, epoch, number] = /^msg_(\w+)_(\d+)$/.exec(message?.id ?? '') ?? []
    expect(message?.payload).toEqual({
      type: 'entitlement.granted',
      timestamp: '2026-03-01T11:59:59.000Z',
      data: {
        cursor: `${epoch}.${number}`,
        at: '2026-03-01T11:59:59.000Z',
        environment: 'live',
        customerId: 'cus_1',
        productId: 'pro_1',
        before: { active: false, status: 'none', since: null, until: null },
        after: {
          active: true,
          status: 'ending',
          since: '2026-03-01T11:59:58.000Z',
          until: '2026-03-01T12:01:00.000Z',
        },
        features: ['feature of pro_1'],
        cause: { kind: 'event', eventId: 'evt_1' },
      },
    })
    await stateIs({ waiting: 0, failed: 0 })
  })

  it('begins with what changes after it was first configured', async () => {
    const store = await outboundStore()
    const receiver = await startReceiver()
    await store.change({ productId: 'pro_old' })
    await store.tell(receiver)
    await store.change({ productId: 'pro_new' })
    await arrive(receiver, 1)
    expect(told(receiver)).toEqual(['cus_1/pro_new'])
  })

  it('begins anew after a restore, says so, and still tells what was waiting, under its old id', async () => {
    const store = await outboundStore()
    const receiver = await startReceiver()
    store.pause(true)
    const before = await store.tell(receiver)
    await store.change({ productId: 'pro_waiting' })
    await eventually(async () => expect(await before.status()).toMatchObject([{ waiting: 1 }]))
    await before.stop()
    await store.change({ productId: 'pro_not_seen' })
    await store.restore()
    store.pause(false)
    await store.tell(receiver)
    await store.change({ productId: 'pro_after' })
    await arrive(receiver, 2)
    expect(told(receiver)).toEqual(['cus_1/pro_waiting', 'cus_1/pro_after'])
    const [first, second] = receiver.received.map(({ id }) => /^msg_(\w+)_\d+$/.exec(id)?.[1])
    expect(first).not.toBe(second)
    expect(store.logged()).toContain('was restored')
  })

  it('tells of the environments that it is configured for alone', async () => {
    const store = await outboundStore()
    const receiver = await startReceiver()
    await store.tell({ ...receiver, environments: ['sandbox'] })
    await store.change({ productId: 'pro_live' }, { productId: 'pro_test', environment: 'sandbox' })
    await arrive(receiver, 1)
    expect(told(receiver)).toEqual(['cus_1/pro_test'])
  })

  it('keeps the order of each customer, and lets no customer wait for another', async () => {
    const store = await outboundStore()
    const receiver = await startReceiver()
    const held: (() => void)[] = []
    receiver.answerWith((res, { payload }) => {
      if (payload.data.customerId === 'cus_1' && held.length === 0) held.push(() => res.writeHead(204).end())
      else res.writeHead(204).end()
    })
    await store.tell(receiver)
    await store.change(
      { productId: 'pro_1' },
      { productId: 'pro_2' },
      { customerId: 'cus_2', productId: 'pro_1' },
      { customerId: 'cus_2', productId: 'pro_2' },
    )
    await arrive(receiver, 3)
    expect(told(receiver).toSorted()).toEqual(['cus_1/pro_1', 'cus_2/pro_1', 'cus_2/pro_2'])
    held[0]?.()
    await arrive(receiver, 4)
    expect(told(receiver).at(-1)).toBe('cus_1/pro_2')
  })

  it('has several customers under way at once, and never more than eight', async () => {
    const store = await outboundStore()
    const receiver = await startReceiver()
    const held: (() => void)[] = []
    const seen: number[] = []
    receiver.answerWith((res) => {
      held.push(() => res.writeHead(204).end())
      seen.push(held.length)
      // A ninth that is not to come has some time to come.
      if (held.length === 8) setTimeout(() => held.splice(0).forEach((answer) => void answer()), 20)
    })
    await store.tell(receiver)
    await store.change(...Array.from({ length: 40 }, (_, n) => ({ customerId: `cus_${n}` })))
    await arrive(receiver, 40)
    expect(Math.max(...seen)).toBe(8)
  })

  it('tries again under the same id, with the same body, and signs anew', async () => {
    const { store, receiver, outbound } = await telling((res, message, count) =>
      status(count < 3 ? 500 : 204)(res, message, count),
    )
    await store.change({}, { productId: 'pro_2' })
    await arrive(receiver, 1)
    for (const attempts of [1, 2]) {
      await eventually(async () => expect((await nextAttempt(store.db)).attempts).toBe(attempts))
      pass(outbound, MINUTE)
    }
    await arrive(receiver, 4)
    const [first, second, third, next] = receiver.received
    expect([second?.id, third?.id]).toEqual([first?.id, first?.id])
    expect([second?.payload, third?.payload]).toEqual([first?.payload, first?.payload])
    expect([first, second, third].map((one) => one?.signedAt)).toEqual([
      NOON,
      NOON + MINUTE,
      NOON + 2 * MINUTE,
    ])
    expect(next?.payload.data.productId).toBe('pro_2')
  })

  it('follows no redirect', async () => {
    const store = await outboundStore()
    const receiver = await startReceiver()
    const elsewhere = await startReceiver()
    receiver.answerWith(status(307, { location: elsewhere.url }))
    await store.tell(receiver)
    await store.change({})
    await eventually(async () => expect((await nextAttempt(store.db)).attempt_log).toContain('"status":307'))
    expect([elsewhere.received, elsewhere.refused]).toEqual([[], []])
  })

  it('sends nothing to anybody before a Retry-After has passed', async () => {
    const { store, receiver, outbound, stateIs } = await telling((res, message, count) =>
      count === 1
        ? status(429, { 'retry-after': '600' })(res, message, count)
        : status(204)(res, message, count),
    )
    await store.change({})
    await eventually(async () => expect((await nextAttempt(store.db)).attempts).toBe(1))
    await store.change({ customerId: 'cus_2' })
    pass(outbound, 9 * MINUTE)
    await stateIs({ waiting: 2 })
    pass(outbound, MINUTE)
    await arrive(receiver, 3)
    expect(receiver.received.map(({ signedAt }) => signedAt)).toEqual([
      NOON,
      NOON + 10 * MINUTE,
      NOON + 10 * MINUTE,
    ])
  })

  it('waits no longer for a Retry-After once any instance is asked to retry, or once the URL has changed', async () => {
    const store = await outboundStore()
    const [old, next] = [await startReceiver(), await startReceiver()]
    const answers: (() => void)[] = []
    old.answerWith((...asked) => void answers.push(() => status(503, { 'retry-after': '86400' })(...asked)))
    const address = { url: old.url }
    const outbound = await store.tell(address)
    const hasFailed = (attempts: number) =>
      eventually(async () => {
        answers.splice(0).forEach((answer) => void answer())
        expect(JSON.parse((await nextAttempt(store.db)).attempt_log)).toHaveLength(attempts)
      })
    await store.change({})
    await hasFailed(1)
    // By another instance, which has no lane of its own.
    await store.writeSync('retryMessages', { webhooks: ['default'] })
    outbound.wake()
    await hasFailed(2)
    pass(outbound, MINUTE)
    await store.change({ customerId: 'cus_2' })
    await store.writeSync('retryMessages', { webhooks: ['default'], customerId: 'cus_2' })
    outbound.wake()
    await eventually(() => expect(answers).toHaveLength(1))
    address.url = next.url
    await outbound.reload()
    await arrive(next, 1)
    // From the old URL: it closes the new one no more.
    answers.splice(0).forEach((answer) => void answer())
    await eventually(() => expect(store.logged().match(/delivery failed/g)).toHaveLength(3))
    await store.change({ customerId: 'cus_3' })
    await arrive(next, 2)
    expect(told(next)).toEqual(['cus_1/pro_1', 'cus_3/pro_1'])
  })

  it('parks what the receiver says is gone, and goes on with the next', async () => {
    const { store, receiver, stateIs } = await telling((res, message, count) =>
      status(count === 1 ? 410 : 204)(res, message, count),
    )
    await store.change({}, { productId: 'pro_2' })
    await arrive(receiver, 2)
    await stateIs({
      waiting: 0,
      failed: 1,
      lastDeliveredAt: NOON,
      lastError: { at: NOON, reason: 'answered 410' },
    })
    expect(told(receiver)).toEqual(['cus_1/pro_1', 'cus_1/pro_2'])
  })

  it('gives up after three days, goes on with the next, and sends it and what came later again when it is told to', async () => {
    const { store, receiver, outbound, stateIs } = await telling((res, message, count) =>
      count < 5
        ? status(503, count < 4 ? { 'retry-after': '86400' } : {})(res, message, count)
        : status(204)(res, message, count),
    )
    await store.change({}, { productId: 'pro_2' })
    for (const attempts of [1, 2, 3]) {
      await eventually(async () => expect((await nextAttempt(store.db)).attempts).toBe(attempts))
      pass(outbound, DAY)
    }
    await arrive(receiver, 5)
    await stateIs({ waiting: 0, failed: 1 })
    for (const other of [
      { customerId: 'cus_2' },
      { target: 'discord:1:2' },
      { environments: ['sandbox'] },
    ] as const) {
      expect(await outbound.retry(other)).toBe(0)
    }
    expect(
      await outbound.retry({ target: 'webhook:default', environments: ['live'], customerId: 'cus_1' }),
    ).toBe(2)
    await arrive(receiver, 7)
    expect(told(receiver)).toEqual([1, 1, 1, 1, 2, 1, 2].map((n) => `cus_1/pro_${n}`))
    expect(receiver.received[5]?.id).toBe(receiver.received[0]?.id)
    await stateIs({ waiting: 0, failed: 0 })
  })

  it('sends nothing while sync is paused, and keeps it', async () => {
    const { store, receiver, outbound, stateIs } = await telling()
    store.pause(true)
    await store.change({})
    await stateIs({ waiting: 1 })
    vi.setSystemTime(NOON + MINUTE)
    store.pause(false)
    outbound.wake()
    await arrive(receiver, 1)
    expect(receiver.received[0]?.signedAt).toBe(NOON + MINUTE)
  })

  it('signs by each of its secrets, so that the receiver may change from one to the next', async () => {
    const store = await outboundStore()
    const receivers = [await startReceiver(SECRET), await startReceiver(NEXT_SECRET)]
    for (const receiver of receivers) {
      const outbound = await store.tell({ ...receiver, secrets: [SECRET, NEXT_SECRET] })
      await store.change({})
      await arrive(receiver, 1)
      await outbound.stop()
      expect(receiver.refused).toEqual([])
    }
  })

  it('takes the status for the answer where the body never ends', async () => {
    const { store, receiver, stateIs } = await telling((res) => void res.writeHead(200).write('and so on'))
    await store.change({}, { productId: 'pro_2' })
    await arrive(receiver, 2)
    await stateIs({ waiting: 0, failed: 0 })
  })

  it('gives a receiver fifteen seconds to answer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const receiver = await startReceiver()
    receiver.answerWith(() => {})
    const sent = { id: 'msg_1', body: '{}' }
    const answer = postMessage(addressOf(receiver), sent, NOON, new AbortController().signal)
    vi.advanceTimersByTime(15_000)
    expect(await answer).toEqual({ status: null, reason: 'no answer within 15 s', closedUntil: null })
  })

  it('ends beside a receiver that hangs, and sends what it knows nothing of again', async () => {
    const { store, receiver, outbound } = await telling(() => {})
    await store.change({})
    await arrive(receiver, 1)
    await outbound.stop()
    receiver.answerWith(status(204))
    await store.tell(receiver)
    await arrive(receiver, 2)
    expect(receiver.received[1]?.id).toBe(receiver.received[0]?.id)
  })

  it('tells credentials to the receiver, and nothing secret to anybody else', async () => {
    const store = await outboundStore()
    const receiver = await startReceiver()
    receiver.answerWith((res, message, count) =>
      status([500, 410, 204][count - 1] ?? 204)(res, message, count),
    )
    const url = receiver.url
      .replace('http://', 'http://me:pass%20word@')
      .replace('/hook', '/in/path-part?key=query-part')
    const outbound = await store.tell({ url })
    await store.change({}, { productId: 'pro_2' })
    await eventually(async () => expect((await nextAttempt(store.db)).attempts).toBe(1))
    pass(outbound, MINUTE)
    await arrive(receiver, 3)
    await eventually(() => expect(store.logged()).toContain('webhook delivered'))
    await outbound.stop()
    const unreachable = await store.tell({ url: url.replace(/:\d+/, ':9') })
    await store.change({})
    await eventually(() => expect(store.logged()).toContain('no connection (fetch refuses this port'))
    pass(unreachable, MINUTE)
    await eventually(() => expect(store.logged()).toContain('webhook delivery is failing'))
    const [message] = receiver.received
    expect(message?.authorization).toBe(`Basic ${Buffer.from('me:pass word').toString('base64')}`)
    expect(message?.path).toBe('/in/path-part?key=query-part')
    const seen = store.logged() + JSON.stringify([await unreachable.status(), await nextAttempt(store.db)])
    for (const part of ['me:pass', 'pass%20word', 'path-part', 'query-part', SECRET.slice(6)]) {
      expect(seen).not.toContain(part)
    }
  })
})

async function nextAttempt(db: Awaited<ReturnType<typeof outboundStore>>['db']) {
  return db
    .selectFrom('messages')
    .select(['attempts', 'attempt_log', 'next_attempt_at'])
    .orderBy('cursor')
    .limit(1)
    .executeTakeFirstOrThrow()
}
