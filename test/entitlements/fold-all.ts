import { entitlementsOf } from '../../src/entitlements/entitlement.js'
import { foldSource } from '../../src/entitlements/fold-source.js'
import type { HoldReason, SourceEvent, SourceKey, SourceState } from '../../src/entitlements/model.js'
import type { Policy } from '../../src/entitlements/policy.js'
import { isNewerLink, linkOf, type PaymentLink, sourceOf } from '../../src/entitlements/source-of.js'
import type { NormalizedEvent } from '../../src/provider/event.js'
import type { PlainEntitlement } from './plain/entitlements.js'

/** Folds a mixed set of events, source by source, as a store would that has them all. */
export function foldAll(events: readonly NormalizedEvent[], policy: Policy): SourceState[] {
  const links = new Map<string, PaymentLink>()
  for (const link of events.map(linkOf)) {
    if (link && isNewerLink(link, links.get(link.paymentId))) links.set(link.paymentId, link)
  }
  const sources = new Map<string, { key: SourceKey; events: SourceEvent[] }>()
  for (const event of events) {
    if (event.subject !== 'payment' && event.subject !== 'subscription') continue
    const key = sourceOf(event, (paymentId) => links.get(paymentId)?.subscriptionId)
    if (key === null) continue
    const name = JSON.stringify([key.kind, key.id])
    const source = sources.get(name) ?? { key, events: [] }
    source.events.push(event)
    sources.set(name, source)
  }
  return [...sources.values()].map(({ key, events: own }) => foldSource(key, own, policy))
}

/** Who has what, in the form in which the plain reading answers. */
export function foldedEntitlements(
  events: readonly NormalizedEvent[],
  policy: Policy,
  now: number,
): PlainEntitlement[] {
  const states = foldAll(events, policy)
  const customers = [...new Set(states.map(({ customerId }) => customerId))]
    .filter((id) => id !== null)
    .sort()
  return customers.flatMap((customerId) =>
    entitlementsOf(
      states.filter((state) => state.customerId === customerId),
      [],
      { now },
    ).map(({ sources: _, ...entitlement }) => ({ customerId, ...entitlement })),
  )
}

/** Every event that waits, whatever its source. */
export function foldedHolds(events: readonly NormalizedEvent[], policy: Policy): Record<string, HoldReason> {
  return Object.assign({}, ...foldAll(events, policy).map(({ held }) => held))
}
