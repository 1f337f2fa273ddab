import type { Transaction } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import { linkOf, sourceOf } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { PaymentMove } from '../store/events.js'
import { learnLinks } from '../store/payment-links.js'
import type { Database } from '../store/schema.js'

/** A payment whose stored events, if there are any, belong elsewhere from now on. */
export interface LinkedMove extends PaymentMove {
  /** The id of the event that says so. */
  readonly linkedBy: string
}

export interface Assignment {
  /** By event id. */
  readonly sources: ReadonlyMap<string, SourceKey | null>
  readonly moves: readonly LinkedMove[]
}

/** Learns which payments events link to a subscription, and finds the source of each event. Moves nothing. */
export async function assignSources(
  trx: Transaction<Database>,
  environment: Environment,
  events: readonly NormalizedEvent[],
): Promise<Assignment> {
  const paymentIds = [...new Set(events.map(paymentOf).filter((id) => id !== null))]
  const namings = events.map(linkOf).filter((link) => link !== null)
  const { links, changes } = await learnLinks(trx, environment, paymentIds, namings)
  const subscriptionOf = (paymentId: string) => links.get(paymentId)?.subscriptionId
  return {
    sources: new Map(events.map((event) => [event.id, sourceOf(event, subscriptionOf)])),
    moves: changes.map(({ paymentId, from, to, linkedBy }) => ({
      paymentId,
      linkedBy,
      from: from === null ? { kind: 'payment', id: paymentId } : { kind: 'subscription', id: from },
      to: { kind: 'subscription', id: to },
    })),
  }
}

function paymentOf(event: NormalizedEvent): string | null {
  return event.subject === 'payment' || event.subject === 'subscription' ? event.paymentId : null
}
