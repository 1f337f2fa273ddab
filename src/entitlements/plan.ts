import type { SubscriptionEvent } from '../provider/event.js'
import type { PaymentFinder } from './paying-events.js'
import type { Reading, SourceEvent } from './reading.js'

interface Naming {
  readonly productId: string
  /** The payment that a plan change was charged to; while it stands taken back, the change does not count. */
  readonly charge: string | null
}

export interface Plan {
  /** Takes in the next event of the walk. */
  apply(event: SourceEvent): void
  /** The product in force; null where no event names one. */
  product(): string | null
}

/** Follows which product a subscription gives: that of the newest naming that counts. */
export function createPlan(
  walk: readonly Reading[],
  findCharge: PaymentFinder,
  isTakenBack: (paymentId: string) => boolean,
): Plan {
  const isNaming = chooseNamings(walk)
  // Before the first naming, the product is what that one says.
  const first = walk.find(({ event }) => event.productId !== null && isNaming(event))?.event.productId ?? null
  const namings: Naming[] = []

  function product(): string | null {
    for (let i = namings.length - 1; i >= 0; i -= 1) {
      const naming = namings[i]
      if (naming && (naming.charge === null || !isTakenBack(naming.charge))) return naming.productId
    }
    return first
  }

  return {
    apply(event) {
      if (event.productId === null || !isNaming(event)) return
      const changesPlan = event.type === 'subscription.updated' && event.productId !== product()
      namings.push({
        productId: event.productId,
        charge: changesPlan ? findCharge(event as SubscriptionEvent) : null,
      })
    },
    product,
  }
}

const NAMING_TYPES: readonly string[] = [
  'subscription.created',
  'subscription.renewed',
  'subscription.updated',
]

/** The best kind of naming there is: what says so outright, other subscription events, grants, anything. */
function chooseNamings(walk: readonly Reading[]): (event: SourceEvent) => boolean {
  const granting = new Set(walk.filter(({ effect }) => effect === 'grant').map(({ event }) => event))
  const kinds: ((event: SourceEvent) => boolean)[] = [
    ({ type }) => NAMING_TYPES.includes(type),
    ({ subject }) => subject === 'subscription',
    (event) => granting.has(event),
  ]
  const named = walk.filter(({ event }) => event.productId !== null)
  return kinds.find((isKind) => named.some(({ event }) => isKind(event))) ?? (() => true)
}
