import type { PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import { minute } from './events.js'
import { createReporter, type Telling } from './story-reporter.js'

const DAY = 24 * 60
const PERIOD = 30 * DAY

/** What may happen to a subscription after it began. */
export const CHAPTERS = [
  'renewed',
  'renewed_before_payment',
  'renewed_without_payment',
  'dunned_then_renewed',
  'dunned_then_expired',
  'upgraded',
  'upgraded_free',
  'downgraded',
  'cycle_refunded',
  'first_refunded',
  'charge_refunded',
  'charged_back',
  'canceled_now',
  'canceled_for_period_end',
  'canceled_at_period_end',
  'revived',
] as const
export type Chapter = (typeof CHAPTERS)[number]

/** The events of a subscription that begins and goes through `chapters` two days apart, as they happen. */
export function tellSubscription(
  telling: Telling,
  totalCycles: number | null,
  chapters: readonly Chapter[],
): readonly (PaymentEvent | SubscriptionEvent)[] {
  const reporter = createReporter(telling)
  const firstPayment = `${telling.id}_pay_1`
  let now = 0
  let cycle = 0
  let paidUntil = 0
  let plan = 0
  let payments = 0
  /** Null: the cycle's payment is never reported. */
  let cyclePayment: string | null = null
  let charge: string | null = null

  const product = () => `pro_${['a', 'b', 'c'][plan % 3]}`
  const nextPayment = () => {
    payments += 1
    return `${telling.id}_pay_${payments}`
  }
  const payment = (type: PaymentEvent['type'], paymentId: string | null) => {
    if (paymentId !== null) reporter.payment(now, type, paymentId, product(), telling.id)
  }
  const subscription = (type: SubscriptionEvent['type'], flags: { cancelAtPeriodEnd?: boolean } = {}) => {
    reporter.subscription(now, type, {
      productId: product(),
      paymentId: cyclePayment,
      cycles: { current: cycle, total: totalCycles },
      expiresAt: minute(paidUntil),
      ...flags,
    })
  }
  const pay = (paymentId: string | null) => {
    payment('payment.authorized', paymentId)
    payment('checkout.succeeded', paymentId)
    now += 2
    payment('payment.succeeded', paymentId)
  }
  const waitForPeriodEnd = () => {
    now = Math.max(now, paidUntil)
  }
  const cycleBegins = (type: 'subscription.created' | 'subscription.renewed') => {
    cycle += 1
    paidUntil = now + PERIOD
    subscription(type)
  }
  const renew = () => {
    cyclePayment = nextPayment()
    pay(cyclePayment)
    cycleBegins('subscription.renewed')
  }
  const decline = () => {
    waitForPeriodEnd()
    cyclePayment = nextPayment()
    payment('payment.failed', cyclePayment)
    subscription('subscription.past_due')
  }

  const tell: Readonly<Record<Chapter, () => void>> = {
    renewed: () => {
      waitForPeriodEnd()
      renew()
    },
    renewed_before_payment: () => {
      waitForPeriodEnd()
      cyclePayment = nextPayment()
      cycleBegins('subscription.renewed')
      now += 5
      pay(cyclePayment)
    },
    renewed_without_payment: () => {
      waitForPeriodEnd()
      cyclePayment = null
      cycleBegins('subscription.renewed')
    },
    dunned_then_renewed: () => {
      decline()
      now += 3 * DAY
      pay(cyclePayment)
      cycleBegins('subscription.renewed')
    },
    dunned_then_expired: () => {
      decline()
      now += 30 * DAY
      subscription('subscription.expired')
    },
    upgraded: () => {
      charge = nextPayment()
      pay(charge)
      plan += 1
      subscription('subscription.updated')
    },
    upgraded_free: () => {
      plan += 1
      subscription('subscription.updated')
    },
    downgraded: () => {
      waitForPeriodEnd()
      plan += 2
      renew()
      subscription('subscription.updated')
    },
    cycle_refunded: () => payment('payment.refunded', cyclePayment),
    first_refunded: () => payment('payment.refunded', firstPayment),
    charge_refunded: () => payment('payment.refunded', charge),
    charged_back: () => payment('payment.chargeback', cyclePayment),
    canceled_now: () => subscription('subscription.canceled', { cancelAtPeriodEnd: false }),
    canceled_for_period_end: () => subscription('subscription.canceled', { cancelAtPeriodEnd: true }),
    canceled_at_period_end: () => {
      subscription('subscription.updated', { cancelAtPeriodEnd: true })
      waitForPeriodEnd()
      subscription('subscription.canceled', { cancelAtPeriodEnd: true })
    },
    revived: renew,
  }

  cyclePayment = nextPayment()
  pay(cyclePayment)
  cycleBegins('subscription.created')
  for (const chapter of chapters) {
    now += 2 * DAY
    tell[chapter]()
  }
  return reporter.events
}
