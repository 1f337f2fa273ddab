import type { SubscriptionEvent } from '../provider/event.js'
import { namingKindOf } from './naming.js'
import type { Reading } from './reading.js'
import type { WalkFacts } from './subscription-reading.js'

interface Naming {
  readonly productId: string
  /** The payment that a plan change was charged to; while it stands taken back, the change does not count. */
  readonly charge: string | null
}

export interface PlanState {
  /** Those that may still count, oldest first: a charged one may fall back on those before it. */
  readonly namings: readonly Naming[]
  /** Every payment that a plan change was ever charged to. */
  readonly charges: readonly string[]
}

export const NO_PLAN: PlanState = { namings: [], charges: [] }

export interface Plan {
  /** Takes in the next event of the walk. */
  apply(reading: Reading): void
  /** The product in force; null where no event names one. */
  product(): string | null
  state(): PlanState
}

/** Follows which product a subscription gives: that of the newest naming that counts. */
export function createPlan(
  facts: WalkFacts,
  isTakenBack: (paymentId: string) => boolean,
  from: PlanState,
): Plan {
  let { namings, charges } = from

  function product(): string | null {
    const counting = namings.findLast(({ charge }) => charge === null || !isTakenBack(charge))
    return counting?.productId ?? facts.firstProduct
  }

  return {
    apply(reading) {
      const { event } = reading
      if (event.productId === null || namingKindOf(reading) !== facts.namingKind) return
      const changesPlan = event.type === 'subscription.updated' && event.productId !== product()
      const charge = changesPlan ? facts.findCharge(event as SubscriptionEvent) : null
      const [only] = namings
      const isKnown = namings.length === 1 && only?.charge === null && only.productId === event.productId
      if (charge === null && isKnown) return
      const naming = { productId: event.productId, charge }
      // Without a charge it counts whatever happens, so that none before it ever will again.
      namings = charge === null ? [naming] : [...namings, naming]
      if (charge !== null && !charges.includes(charge)) charges = [...charges, charge]
    },
    product,
    state: () => ({ namings, charges }),
  }
}
