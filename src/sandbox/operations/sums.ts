/* Plain sums over payments: analytics and balance. */

import { CURRENCIES, type Payment, type Subscription } from '../model.js'
import { isRunning } from '../subscription.js'
import type { World } from '../world.js'

/** What both have. */
type About = Pick<Payment | Subscription, 'customerId' | 'productId'>

const net = ({ netCents, refundedCents, chargebackAt }: Payment): number =>
  chargebackAt === null ? netCents - refundedCents : 0

/** Of all payments that were paid, by currency. */
export function sumsOf(world: World, isAbout: (record: About) => boolean): object {
  const paid = [...world.each('payment')].filter((one) => one.receivedAt !== null && isAbout(one))
  let activeSubscriptions = 0
  for (const one of world.each('subscription')) if (isRunning(one) && isAbout(one)) activeSubscriptions += 1
  return {
    payments: paid.length,
    activeSubscriptions,
    revenue: CURRENCIES.map((currency) => {
      const own = paid.filter((payment) => payment.currency === currency)
      return {
        currency,
        grossAmountCents: total(own, ({ grossCents }) => grossCents),
        refundedAmountCents: total(own, ({ refundedCents }) => refundedCents),
        vatAmountCents: total(own, ({ vatCents }) => vatCents),
        platformFeeCents: total(own, ({ feeCents }) => feeCents),
        netAmountCents: total(own, net),
      }
    }),
  }
}

/** What is the merchant's, by rail: settled, and still to settle. */
export function balanceOf(world: World): object {
  const paid = [...world.each('payment')].filter(({ receivedAt }) => receivedAt !== null)
  const balances = CURRENCIES.map((currency) => {
    const own = paid.filter((payment) => payment.currency === currency)
    const sum = (isSettled: boolean, isCrypto: boolean): number =>
      total(
        own.filter(
          ({ settledAt, deposit }) => (settledAt !== null) === isSettled && (deposit !== null) === isCrypto,
        ),
        net,
      )
    return {
      currency,
      card: { availableCents: sum(true, false), pendingCents: sum(false, false) },
      crypto: { availableCents: sum(true, true), pendingCents: sum(false, true) },
    }
  })
  return { balances }
}

function total(payments: readonly Payment[], cents: (payment: Payment) => number): number {
  return payments.reduce((sum, payment) => sum + cents(payment), 0)
}
