import type { Transaction } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import { isNewerLink, linkOf, sourceOf } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { sourceKey } from '../store/keys.js'
import { loadLinks } from '../store/payment-links.js'
import type { Database } from '../store/schema.js'
import type { WholeSource } from '../store/whole-sources.js'

/** What is written down otherwise than these events say of which belongs to which. */
export interface MisplacedEvents {
  /** Payments whose subscription is not the one that an event names last. */
  readonly paymentIds: readonly string[]
  /** Events that stand with a source which is not theirs. */
  readonly eventIds: readonly string[]
}

/**
 * Looks whether what is known of payments' subscriptions is what the events of these sources say, and whether they stand
 * where that puts them.
 */
export async function findMisplaced(
  trx: Transaction<Database>,
  environment: Environment,
  sources: readonly WholeSource[],
): Promise<MisplacedEvents> {
  const placed = sources.flatMap(({ key, events }) => events.map(({ event }) => ({ key, event })))
  const payments = new Set(placed.map(({ event }) => paymentOf(event)).filter((id) => id !== null))
  const links = await loadLinks(trx, environment, [...payments])
  const unknown = placed.flatMap(({ event }) => {
    const told = linkOf(event)
    return told !== null && isNewerLink(told, links.get(told.paymentId)) ? [told.paymentId] : []
  })
  const subscriptionOf = (paymentId: string) => links.get(paymentId)?.subscriptionId
  const elsewhere = placed.filter(({ key, event }) => !isSameSource(sourceOf(event, subscriptionOf), key))
  return {
    paymentIds: [...new Set(unknown)],
    eventIds: elsewhere.map(({ event }) => event.id),
  }
}

function isSameSource(is: SourceKey | null, stands: SourceKey): boolean {
  return is !== null && sourceKey(is) === sourceKey(stands)
}

function paymentOf(event: NormalizedEvent): string | null {
  return event.subject === 'payment' || event.subject === 'subscription' ? event.paymentId : null
}
