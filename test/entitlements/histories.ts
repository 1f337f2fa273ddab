import fc from 'fast-check'
import type { SourceKey } from '../../src/entitlements/model.js'
import type { NormalizedEvent, PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import {
  PAYMENT_EVENT_TYPES,
  PAYMENT_REPORTED,
  SUBSCRIPTION_EVENT_TYPES,
  SUBSCRIPTION_REPORTED,
} from '../../src/provider/event-types.js'
import { PAYMENT_PLOTS, type PaymentPlot, tellPayment } from './payment-story.js'
import { plainSourceKeys } from './plain/source-keys.js'
import type { Telling } from './story-reporter.js'
import { CHAPTERS, tellSubscription } from './subscription-story.js'
import {
  anyContendingCycle,
  anyContendingPayment,
  anyCustomerEvent,
  anyPaymentEvent,
  anySubscriptionEvent,
  withOwnIds,
} from './unlawful.js'

/** A source and all of its events, in the order in which they were made up. */
export interface History {
  readonly key: SourceKey
  readonly events: readonly (PaymentEvent | SubscriptionEvent)[]
}

const tellings = (id: string): fc.Arbitrary<Telling> =>
  fc.record({
    id: fc.constant(id),
    customerId: fc.constantFrom('cus_1', 'cus_2'),
    rail: fc.constantFrom('card', 'card', 'crypto'),
    generations: fc.constantFrom(['v3'], ['v2'], ['v3', 'v2']),
    link: fc.constantFrom('always', 'always', 'late', 'by_cycle', 'never'),
    nameless: fc.constantFrom(0, 0, 1, 3, 100),
  })

const PLOTS = Object.keys(PAYMENT_PLOTS) as PaymentPlot[]

const paymentStories = (id: string) =>
  fc
    .tuple(tellings(id), fc.constantFrom(...PLOTS), fc.constantFrom(1, 90, 3000))
    .map(([telling, plot, pace]) => tellPayment(telling, plot, pace))

const subscriptionStories = (id: string) =>
  fc
    .tuple(
      tellings(id),
      fc.constantFrom(null, null, 1, 2, 4),
      fc.array(fc.constantFrom(...CHAPTERS), { maxLength: 6, size: 'max' }),
    )
    .map(([telling, totalCycles, chapters]) => tellSubscription(telling, totalCycles, chapters))

/** Three in four stories reach us whole; of the others, any events may be missing. */
function told(stories: fc.Arbitrary<History['events']>): fc.Arbitrary<History['events']> {
  return stories.chain((events) =>
    fc.oneof(
      { weight: 3, arbitrary: fc.constant(events) },
      { weight: 1, arbitrary: fc.subarray([...events]) },
    ),
  )
}

/** Keeps what belongs to the source: a payment that nothing links to its subscription is a source of its own. */
function historyOf(key: SourceKey, events: History['events']): History {
  const keys = plainSourceKeys(events)
  return { key, events: events.filter(({ id }) => isSame(keys.get(id), key)) }
}

function isSame(one: SourceKey | null | undefined, other: SourceKey): boolean {
  return one?.kind === other.kind && one.id === other.id
}

const PAYMENT_KEY: SourceKey = { kind: 'payment', id: 'pay_1' }
const SUBSCRIPTION_KEY: SourceKey = { kind: 'subscription', id: 'sub_1' }

/** One one-time payment, `pay_1`, as the documents describe it. */
export const paymentHistory: fc.Arbitrary<History> = told(paymentStories('pay_1')).map((events) =>
  historyOf(PAYMENT_KEY, events),
)

/** One subscription, `sub_1`, as the documents describe it: cycles, plan changes, dunning, refunds, endings. */
export const subscriptionHistory: fc.Arbitrary<History> = told(subscriptionStories('sub_1')).map((events) =>
  historyOf(SUBSCRIPTION_KEY, events),
)

const PAYMENT_IDS = ['pay_1', 'pay_2', 'pay_3', null] as const

/** Those that Latchkey reports as well. */
const PAYMENT_TYPES = [...PAYMENT_EVENT_TYPES, PAYMENT_REPORTED] as const
const SUBSCRIPTION_TYPES = [...SUBSCRIPTION_EVENT_TYPES, SUBSCRIPTION_REPORTED] as const

const unlawfulPayment: fc.Arbitrary<History> = fc
  .array(anyPaymentEvent(['pay_1'], [null], PAYMENT_TYPES), { minLength: 1, maxLength: 8, size: 'max' })
  .map((events) => historyOf(PAYMENT_KEY, withOwnIds(events)))

/** Up to 14 events of `sub_1`, of these two kinds. */
const anyOrderOf = (payments: fc.Arbitrary<PaymentEvent>, others: fc.Arbitrary<SubscriptionEvent>) =>
  fc
    .array(fc.oneof<fc.Arbitrary<PaymentEvent | SubscriptionEvent>[]>(payments, others), {
      minLength: 1,
      maxLength: 14,
      size: 'max',
    })
    .map((events) => historyOf(SUBSCRIPTION_KEY, withOwnIds(events)))

/** One source of which anything is told, at few instants: what no provider should send, and may. */
export const unlawfulHistory: fc.Arbitrary<History> = fc.oneof(
  { weight: 1, arbitrary: unlawfulPayment },
  {
    weight: 3,
    arbitrary: anyOrderOf(
      anyPaymentEvent(PAYMENT_IDS, ['sub_1'], PAYMENT_TYPES),
      anySubscriptionEvent(PAYMENT_IDS, ['sub_1'], SUBSCRIPTION_TYPES),
    ),
  },
  // Where everything decides, payments contend for the basis far more often.
  { weight: 3, arbitrary: anyOrderOf(anyContendingPayment, anyContendingCycle) },
)

const SUBSCRIPTION_IDS = ['sub_1', 'sub_2', null] as const

const unlawfulMixture: fc.Arbitrary<readonly NormalizedEvent[]> = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: anyPaymentEvent(PAYMENT_IDS, SUBSCRIPTION_IDS) },
      { weight: 4, arbitrary: anySubscriptionEvent(PAYMENT_IDS, SUBSCRIPTION_IDS) },
      { weight: 1, arbitrary: anyCustomerEvent },
    ),
    { minLength: 1, maxLength: 20, size: 'max' },
  )
  .map((events) => withOwnIds<NormalizedEvent>(events))

const lawfulMixture: fc.Arbitrary<readonly NormalizedEvent[]> = fc
  .tuple(
    told(subscriptionStories('sub_1')),
    told(subscriptionStories('sub_2')),
    told(paymentStories('pay_1')),
    told(paymentStories('pay_2')),
  )
  .map((stories) => stories.flat())

/** Events of several sources and customers, with links that come late, disagree, or never come. */
export const mixedHistory: fc.Arbitrary<readonly NormalizedEvent[]> = fc.oneof(unlawfulMixture, lawfulMixture)
