import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import type { DifferenceSummary, RecomputePlan } from '../../src/recompute/run.js'
import { type JobPart, loadJobParts } from '../../src/store/recompute.js'
import { minute, paymentEvent, subscriptionEvent } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { bodyOf, deliveryOf, grantOf } from '../ingest/wire.js'
import { type MisreadDelivery, misreadDeliveries, takeInMisread } from './older-readings.js'
import {
  deliveries,
  differencesIn,
  everything,
  expectAsAnew,
  interruptedAt,
  NOW,
  REBUILD,
  type RecomputeStore,
  replayOf,
  storeUnder,
  VERIFY,
} from './recompute-store.js'

const SOON = Date.UTC(2026, 0, 20)
const NO_DIFFERENCE = { gains: 0, losses: 0, otherwise: 0, sample: [] }
const SEVEN = [1, 2, 3, 4, 5, 6, 7].map(grantOf)

/** What a store took in before, and what has to be worked out again. */
interface Scenario {
  readonly told: readonly MisreadDelivery[]
  /** The policy under which all of it came. */
  readonly before: Policy
  /** The policy under which all of it is to stand in the end. */
  readonly after: Policy
  /** What is interrupted, or has something arrive meanwhile. */
  readonly plan: RecomputePlan
}

const SCENARIOS: readonly {
  readonly name: string
  readonly interrupted: string
  readonly scenarios: fc.Arbitrary<Scenario>
  /** What the plan leaves to be done. */
  readonly rest: RecomputePlan | null
}[] = [
  {
    name: 'a rebuild under another policy',
    interrupted: 'rebuild_interrupted',
    scenarios: fc.tuple(deliveries, policies, policies).map(([told, before, after]) => ({
      told: told.map((delivery) => ({ delivery, misreading: 'as today' })),
      before,
      after,
      plan: { ...REBUILD, policy: after },
    })),
    rest: null,
  },
  {
    name: 'a replay of what an older program misread',
    interrupted: 'replay_interrupted',
    scenarios: fc.tuple(misreadDeliveries, policies).map(([told, policy]) => ({
      told,
      before: policy,
      after: policy,
      plan: replayOf(),
    })),
    rest: replayOf({ environment: 'sandbox' }),
  },
]

const deliveriesIn = (told: readonly MisreadDelivery[]): Delivery[] => told.map(({ delivery }) => delivery)

describe.each(SCENARIOS)('$name', ({ interrupted, scenarios, rest }) => {
  const finish = async ({ recompute }: RecomputeStore) => {
    if (rest !== null) await recompute(rest)
  }

  it('ends where taking everything in today would have ended, and changes nothing when it is run again', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios, async ({ told, before, after, plan }) => {
        const store = await storeUnder(before)
        await takeInMisread(store, told)
        await store.recompute(plan)
        await finish(store)
        const done = await everything(store.db)
        const { counts, access } = await store.recompute(plan)
        expect([counts.changed, counts.recovered, access.all]).toEqual([0, 0, NO_DIFFERENCE])
        await finish(store)
        expect(await everything(store.db)).toEqual(done)
        await expectAsAnew(store, after, deliveriesIn(told))
      }),
      { numRuns: 50 },
    )
  })

  it('loses nothing of what is taken in while it runs', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios, fc.nat(), async ({ told, before, after, plan }, cut) => {
        const early = told.slice(0, cut % (told.length + 1))
        const late = deliveriesIn(told.slice(early.length))
        const store = await storeUnder(before)
        await takeInMisread(store, early)
        const written: Promise<unknown>[] = []
        const onProgress = () => {
          const next = late.shift()
          if (next) written.push(store.writeBatch([next]))
        }
        await store.recompute(plan, { onProgress })
        await Promise.all(written)
        for (const delivery of late) await store.writeBatch([delivery])
        await finish(store)
        await expectAsAnew(store, after, deliveriesIn(told))
      }),
      { numRuns: 40 },
    )
  })

  it('goes on after an interruption at any turn, whatever is taken in between', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios, fc.nat(12), async ({ told, before, after, plan }, turns) => {
        const [last, ...early] = told
        const first = await storeUnder(before)
        await takeInMisread(first, early)
        expect([null, interrupted]).toContain(await interruptedAt(turns, first, plan))
        if (last) await first.writeBatch([last.delivery])
        await first.close()

        const again = await storeUnder(before, [], { file: first.file })
        const reached: number[] = []
        await again.recompute(plan, { onProgress: (place) => reached.push(place) })
        expect(reached).toEqual([...reached].sort((a, b) => a - b))
        await finish(again)
        await expectAsAnew(again, after, deliveriesIn([...early, ...(last ? [last] : [])]))
      }),
      { numRuns: 40 },
    )
  })
})

it.each<[string, RecomputePlan, RecomputePlan, number]>([
  ['a rebuild goes on where the same one was interrupted', REBUILD, REBUILD, 4],
  ['a replay goes on where the same one was interrupted', replayOf(), replayOf(), 4],
  ['a replay begins again where nothing is written', replayOf(), replayOf({}, { mode: 'compare' }), 0],
  ['a replay begins again where another filter was meant', replayOf(), replayOf({ endpoint: 'v3' }), 0],
  [
    'a replay begins again where an endpoint has moved since',
    replayOf(),
    replayOf({}, { endpoints: { v3: { environment: 'live', aheadAtMostMs: 86_400_000 } } }),
    0,
  ],
])('%s', async (_, plan, next, from) => {
  const store = await storeUnder(DOCUMENTED_POLICY, SEVEN)
  expect(await interruptedAt(2, store, plan)).toMatch(/_interrupted$/)
  const reached: number[] = []
  await store.recompute(next, { onProgress: (place) => reached.push(place) })
  expect([reached[0], reached.at(-1)]).toEqual([from, 7])
})

it('a rebuild that goes on takes turns as short as before', async () => {
  const payments = Array.from({ length: 40 }, (_, i) =>
    deliveryOf(bodyOf(paymentEvent({ type: 'payment.authorized', id: `evt_${i}`, paymentId: `pay_${i}` }))),
  )
  const turnsOf = async (store: RecomputeStore): Promise<number> => {
    let turns = 0
    const isStopping = async () => {
      turns += 1
      return false
    }
    await store.recompute(REBUILD, { isStopping })
    return turns
  }
  const whole = await turnsOf(await storeUnder(DOCUMENTED_POLICY, payments))
  const store = await storeUnder(DOCUMENTED_POLICY, payments)
  expect(await interruptedAt(whole - 3, store, REBUILD)).toBe('rebuild_interrupted')
  // It sees again to every source that was settled before.
  expect(await turnsOf(store)).toBeGreaterThan(whole / 2)
})

it('a rebuild changes nothing under the policy in force, not even the change log', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, async (told, policy) => {
      const store = await storeUnder(policy, told)
      const untouched = await everything(store.db)
      expect((await store.recompute({ ...REBUILD, policy })).access.all).toEqual(NO_DIFFERENCE)
      expect(await everything(store.db)).toEqual(untouched)
      await store.close()
    }),
    { numRuns: 30 },
  )
})

it('moves all sources to a policy before anything else is worked out again', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, fc.nat(4), async (told, before, after, turns) => {
      const store = await storeUnder(before, told)
      const interrupted = await interruptedAt(turns, store, { ...REBUILD, policy: after })
      if (interrupted !== null && !isDeepStrictEqual(before, after)) {
        for (const plan of [VERIFY, replayOf(), replayOf({}, { mode: 'compare' })]) {
          await expect(store.recompute(plan)).rejects.toMatchObject({ code: 'rebuild_running' })
        }
      }
      // Under the policy in force, which is the one that is being moved to.
      await store.recompute(REBUILD)
      expect(await differencesIn(store)).toEqual([])
      await expectAsAnew(store, after, told)
    }),
    { numRuns: 30 },
  )
})

it('a rebuild begins again where the interrupted one was for another policy', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, policies, async (told, before, dropped, after) => {
      const store = await storeUnder(before, told)
      await interruptedAt(3, store, { ...REBUILD, policy: dropped })
      await store.recompute({ ...REBUILD, policy: after })
      await expectAsAnew(store, after, told)
    }),
    { numRuns: 40 },
  )
})

it('tells of a policy just what applying it does, and changes nothing itself', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, async (told, before, after) => {
      let now = SOON
      const store = await storeUnder(before, told, { clock: () => now })
      now = NOW
      const untouched = await everything(store.db)
      const plan = { ...REBUILD, policy: after, sampleSize: Number.POSITIVE_INFINITY }
      const compared = await store.recompute({ ...plan, mode: 'compare' })
      expect(await everything(store.db)).toEqual(untouched)
      const applied = await store.recompute(plan)
      expect(applied.access).toEqual(compared.access)
      const again = await store.recompute({ ...plan, mode: 'compare' })
      expect(again.access.all).toEqual(NO_DIFFERENCE)
      await store.close()
    }),
    { numRuns: 40 },
  )
})

it('tells of a replay on trial just what it then does, and changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, async (misread, policy) => {
      const store = await storeUnder(policy)
      await takeInMisread(store, misread)
      const untouched = await everything(store.db)
      const trial = await store.recompute(replayOf({}, { mode: 'compare', sampleSize: 1_000 }))
      expect(await everything(store.db)).toEqual(untouched)
      const done = await store.recompute(replayOf({}, { sampleSize: 1_000 }))
      expect(inAnyOrder(trial.access.all)).toEqual(inAnyOrder(done.access.all))
      expect(trial.counts).toEqual(done.counts)
      for (const { environment, customerId, productId, after } of trial.access.all.sample) {
        const stored = await store.db
          .selectFrom('entitlements')
          .select('since')
          .where('environment', '=', environment)
          .where('customer_id', '=', customerId)
          .where('product_id', '=', productId)
          .executeTakeFirst()
        if (after.active) expect(stored).toEqual({ since: after.since })
      }
      await store.close()
    }),
    { numRuns: 50 },
  )
})

/**
 * Without the beginnings of access: one that moves alone is no change of its own, so that where a customer is settled
 * twice the log has it, before and after, as it was in between.
 */
function inAnyOrder({ sample, ...counts }: DifferenceSummary) {
  const texts = sample.map(({ before, after, ...one }) =>
    JSON.stringify({ ...one, before: { ...before, since: null }, after: { ...after, since: null } }),
  )
  return { ...counts, sample: texts.sort() }
}

it('an interrupted replay keeps what earlier interruptions have saved', async () => {
  await fc.assert(
    fc.asyncProperty(
      misreadDeliveries,
      policies,
      fc.array(fc.nat(4), { minLength: 2 }),
      async (misread, policy, stops) => {
        const store = await storeUnder(policy)
        await takeInMisread(store, misread)
        let saved: readonly JobPart[] = []
        for (const turns of stops) {
          const isInterrupted = (await interruptedAt(turns, store, replayOf())) !== null
          const parts = await loadJobParts(store.db)
          if (isInterrupted) expect(parts).toEqual(expect.arrayContaining([...saved]))
          saved = isInterrupted ? parts : []
        }
        await store.close()
      },
    ),
    { numRuns: 25 },
  )
})

it('a replay counts each event once, however often it is interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(misreadDeliveries, policies, fc.array(fc.nat(4)), async (misread, policy, stops) => {
      const [first, other] = [await storeUnder(policy), await storeUnder(policy)]
      for (const store of [first, other]) await takeInMisread(store, misread)
      for (const turns of stops) await interruptedAt(turns, first, replayOf())
      const { counts } = await first.recompute(replayOf())
      const { counts: atOnce } = await other.recompute(replayOf())
      // The last one may begin again, where the one before has ended.
      if (counts.changed > 0) expect(counts).toEqual(atOnce)
      await Promise.all([first.close(), other.close()])
    }),
    { numRuns: 25 },
  )
})

it('a replay counts as changed what says something else, not what only goes with it to another source', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY)
  const payment = deliveryOf(bodyOf(paymentEvent({ type: 'payment.succeeded', paymentId: 'pay_1' })))
  const linking = deliveryOf(bodyOf(subscriptionEvent({ paymentId: 'pay_1' })))
  await takeInMisread(store, [
    { delivery: payment, misreading: 'as today' },
    { delivery: linking, misreading: 'nothing at all' },
  ])
  const { counts } = await store.recompute(replayOf())
  expect(counts).toMatchObject({ read: 2, changed: 1, recovered: 1 })
})

it('a rebuild goes on though an event that it had folded has moved to another source since', async () => {
  // Under this policy it is applied, under the documented one ignored: the rebuild finds that twice.
  const { grantOn } = DOCUMENTED_POLICY
  const unknown = [...grantOn.unknown, 'checkout.initiated'] as const
  const before: Policy = { ...DOCUMENTED_POLICY, grantOn: { ...grantOn, unknown } }
  const begun = deliveryOf(bodyOf(paymentEvent({ type: 'checkout.initiated' })))
  const linking = deliveryOf(bodyOf(subscriptionEvent({ paymentId: 'pay_1' })))
  const store = await storeUnder(before, [begun])
  const plan = { ...REBUILD, policy: DOCUMENTED_POLICY }
  expect(await interruptedAt(2, store, plan)).toBe('rebuild_interrupted')
  await store.writeBatch([linking])
  await store.recompute(plan)
  await expectAsAnew(store, DOCUMENTED_POLICY, [begun, linking])
})

it('settles what an interrupted replay had taken back, though the next one means other events', async () => {
  const store = await storeUnder(DOCUMENTED_POLICY)
  const grant = (id: string, paymentId: string, subscriptionId: string | null = null) =>
    deliveryOf(bodyOf(paymentEvent({ type: 'payment.authorized', id, paymentId, subscriptionId })))
  const newer = grant('evt_2', 'pay_1')
  const rest = [grant('evt_3', 'pay_2'), grant('evt_4', 'pay_3'), grant('evt_1', 'pay_1', 'sub_1')]
  await takeInMisread(store, [
    { delivery: newer, misreading: 'another subscription' },
    ...rest.map((delivery) => ({ delivery, misreading: 'as today' }) as const),
  ])
  expect(await interruptedAt(2, store, replayOf())).toBe('replay_interrupted')
  await store.recompute(replayOf({ type: 'payment.refunded' }))
  await expectAsAnew(store, DOCUMENTED_POLICY, [newer, ...rest])
})

it('loses nothing that arrives while it searches all events for a person and a link, at whichever turn', async () => {
  const first = withEmail(grantIn('evt_1', 'pay_1', 1), 'first@example.com')
  const link = linkIn('evt_2', 'pay_1', 'sub_1', 2)
  const other = linkIn('evt_3', 'pay_9', 'sub_3', 3)
  const late = [
    withEmail(grantIn('evt_4', 'pay_2', 4), 'late@example.com'),
    linkIn('evt_5', 'pay_1', 'sub_2', 5),
  ]
  const misread = [
    { delivery: first, misreading: 'another email' },
    { delivery: link, misreading: 'as today' },
    { delivery: other, misreading: 'another payment' },
  ] as const
  const arrivingAt = async (turn: number): Promise<boolean> => {
    const store = await storeUnder(DOCUMENTED_POLICY)
    await takeInMisread(store, misread)
    let turns = 0
    const isStopping = async () => {
      turns += 1
      if (turns === turn) await store.writeBatch(late)
      return false
    }
    await store.recompute(replayOf(), { isStopping })
    if (turns >= turn) await expectAsAnew(store, DOCUMENTED_POLICY, [first, link, other, ...late])
    return turns >= turn
  }
  let turn = 1
  while (await arrivingAt(turn)) turn += 1
  expect(turn).toBeGreaterThan(5)
})

it.each([
  ['first', [2, 3]],
  ['last', [3, 2]],
] as const)('links a payment by the newest event that is left, where that came %s', async (_, minutes) => {
  const wrong = linkIn('evt_9', 'pay_9', 'sub_9', 9)
  // Of different customers: nothing stored leads from the wrong link to them.
  const links = minutes.map((at) => linkIn(`evt_${at}`, 'pay_1', `sub_${at}`, at, `cus_${at}`))
  const store = await storeUnder(DOCUMENTED_POLICY)
  await takeInMisread(store, [
    ...links.map((delivery) => ({ delivery, misreading: 'as today' }) as const),
    { delivery: wrong, misreading: 'another payment' },
  ])
  await store.recompute(replayOf())
  const stored = await store.db.selectFrom('payment_links').selectAll().orderBy('payment_id').execute()
  expect(stored).toMatchObject([
    { payment_id: 'pay_1', subscription_id: 'sub_3', linked_by: 'evt_3' },
    { payment_id: 'pay_9', subscription_id: 'sub_9' },
  ])
  await expectAsAnew(store, DOCUMENTED_POLICY, [...links, wrong])
})

function grantIn(id: string, paymentId: string, at: number): Delivery {
  const type = 'payment.authorized'
  return deliveryOf(bodyOf(paymentEvent({ type, id, paymentId, createdAt: minute(at) })))
}

function linkIn(id: string, paymentId: string, subscriptionId: string, at: number, customerId = 'cus_1') {
  const link = { id, paymentId, subscriptionId, customerId, createdAt: minute(at) }
  return deliveryOf(bodyOf(subscriptionEvent(link)))
}

function withEmail(delivery: Delivery, email: string): Delivery {
  const event = JSON.parse(delivery.body.toString())
  const data = { ...event.data, customer: { ...event.data.customer, email } }
  return deliveryOf(JSON.stringify({ ...event, data }))
}
