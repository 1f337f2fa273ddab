import { namingKindOf } from './naming.js'
import type { Reading } from './reading.js'
import type { SubscriptionReading } from './subscription-reading.js'

interface Naming {
  readonly productId: string
  /** The payment that a plan change was charged to; while it stands taken back, the change does not count. */
  readonly charge: string | null
}

export interface PlanState {
  /** Those that may still count, oldest first: a charged one may fall back on those before it. */
  readonly namings: readonly Naming[]
}

export interface Plan {
  /** Takes in the next event of the walk. */
  apply(reading: Reading): void
  /** The product in force; null where no event names one. */
  product(): string | null
  state(): PlanState
}

/** Follows which product a subscription gives: that of the newest naming that counts. */
export function createPlan(
  { namingKind, firstProduct, findCharge }: SubscriptionReading,
  isTakenBack: (paymentId: string) => boolean,
): Plan {
  let namings: readonly Naming[] = []

  function product(): string | null {
    const counting = namings.findLast(({ charge }) => charge === null || !isTakenBack(charge))
    return counting?.productId ?? firstProduct
  }

  return {
    apply(reading) {
      const { event } = reading
      if (event.productId === null || namingKindOf(reading) !== namingKind) return
      const changesPlan = event.type === 'subscription.updated' && event.productId !== product()
      const charge = changesPlan ? findCharge(event) : null
      const [only] = namings
      const isKnown = namings.length === 1 && only?.charge === null && only.productId === event.productId
      if (charge === null && isKnown) return
      const naming = { productId: event.productId, charge }
      // Without a charge it counts whatever happens, so that none before it ever will again.
      namings = charge === null ? [naming] : [...namings, naming]
    },
    product,
    state: () => ({ namings }),
  }
}
