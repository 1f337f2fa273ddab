import { chargeOf, isCycleEvent } from './cycle-payment.js'
import { byTime } from './order.js'
import type { SourceEvent } from './rail.js'
import type { PlainSource } from './source.js'
import { standingOf } from './standing.js'

/** An event that says which product a subscription gives. */
interface Naming {
  readonly event: SourceEvent
  readonly productId: string
  /** The payment of a plan change: the naming does not count while this is taken back. */
  readonly charge: string | null
}

/** The product of a one-time payment: the newest named, whatever the instant. */
export function productOfPayment(source: PlainSource): string | null {
  const newestFirst = [...source.events].sort(byTime).reverse()
  return newestFirst.find(({ productId }) => productId !== null)?.productId ?? null
}

/** The product of a subscription after `walked`. */
export function productAfter(source: PlainSource, walked: readonly SourceEvent[]): string | null {
  const namings = namingsOf(source)
  return (newestCounting(source, namings, walked) ?? namings[0])?.productId ?? null
}

/** All namings in the order of the walk, each read with the product that was in force just before it. */
function namingsOf(source: PlainSource): readonly Naming[] {
  const namings: Naming[] = []
  for (const event of eventsRead(source)) {
    if (event.productId === null) continue
    const before = source.events.slice(0, source.events.indexOf(event))
    const inForce = newestCounting(source, namings, before)?.productId ?? event.productId
    const isUpdate = event.type === 'subscription.updated'
    if (isUpdate && event.productId === inForce && event.productId === namings.at(-1)?.productId) continue
    const isPlanChange = isUpdate && event.productId !== inForce
    namings.push({ event, productId: event.productId, charge: isPlanChange ? chargeOf(source, event) : null })
  }
  return namings
}

/** The best kind of naming that there is; the others are not read at all. */
function eventsRead(source: PlainSource): readonly SourceEvent[] {
  const naming = source.events.filter(({ productId }) => productId !== null)
  const kinds = [
    naming.filter((event) => isCycleEvent(event) || event.type === 'subscription.updated'),
    naming.filter((event) => event.subject === 'subscription'),
    naming.filter((event) => source.reading(event) === 'grant'),
  ]
  return kinds.find((events) => events.length > 0) ?? naming
}

function newestCounting(source: PlainSource, namings: readonly Naming[], walked: readonly SourceEvent[]) {
  return namings.findLast(
    ({ event, charge }) =>
      walked.includes(event) && (charge === null || standingOf(source, walked, charge) !== 'taken_back'),
  )
}
