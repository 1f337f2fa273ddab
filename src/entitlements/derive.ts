import type { NormalizedEvent } from '../provider/event.js'
import { type Outcome, outcomeOf } from './disposition.js'
import { foldSource } from './fold-source.js'
import { type HistoryEvent, historyEvent, packHistory } from './history.js'
import type { HoldReason, SourceKey, SourceState } from './model.js'
import type { Policy } from './policy.js'
import { isNewerLink, linkOf, type PaymentLink, sourceKey, sourceOf } from './source-of.js'

/** An event, and its number in the order of arrival. */
export interface ArrivedEvent {
  readonly seq: number
  readonly event: NormalizedEvent
}

/** A source: what its events come to, and what the rules read of each of them. */
export interface DerivedSource {
  readonly state: SourceState
  /** As `packHistory` writes it. */
  readonly history: string
}

/** All that follows from the events of some sources of one environment. */
export interface Derived {
  /** By payment: the newest naming of its subscription. */
  readonly links: ReadonlyMap<string, PaymentLink>
  /** By number, of each event. */
  readonly places: ReadonlyMap<number, SourceKey | null>
  readonly outcomes: ReadonlyMap<number, Outcome>
  /** By `sourceKey`. */
  readonly sources: ReadonlyMap<string, DerivedSource>
}

/**
 * Derives everything from the events alone: which subscription each payment belongs to, which source each event belongs
 * to, what each source gives, and what became of each event.
 * @param events all events of these sources, each once, in the order of arrival
 * @param known what other events say of these payments
 */
export function derive(
  events: readonly ArrivedEvent[],
  policy: Policy,
  known: Iterable<PaymentLink> = [],
): Derived {
  const links = newestLinks(events, known)
  const subscriptionOf = (paymentId: string) => links.get(paymentId)?.subscriptionId
  const places = new Map<number, SourceKey | null>()
  const own = new Map<string, { readonly key: SourceKey; readonly events: HistoryEvent[] }>()
  for (const { seq, event } of events) {
    const key = sourceOf(event, subscriptionOf)
    places.set(seq, key)
    const read = key === null ? null : historyEvent(seq, event)
    if (key === null || read === null) continue
    const name = sourceKey(key)
    const found = own.get(name)
    if (found === undefined) own.set(name, { key, events: [read] })
    else found.events.push(read)
  }
  const sources = new Map(
    [...own].map(([name, { key, events: told }]) => [name, sourceFrom(key, told, policy)]),
  )
  const outcomes = new Map<number, Outcome>()
  const holds = holdsOf(sources)
  for (const { seq, event } of events) {
    const key = places.get(seq) ?? null
    outcomes.set(seq, outcomeOf(event, key, holds.get(event.id), policy))
  }
  return { links, places, outcomes, sources }
}

function sourceFrom(key: SourceKey, events: readonly HistoryEvent[], policy: Policy): DerivedSource {
  return { state: foldSource(key, events, policy).state, history: packHistory(events) }
}

/** As a map: to look an id up in an object, the engine first keeps the id among its own names. */
function holdsOf(sources: ReadonlyMap<string, DerivedSource>): ReadonlyMap<string, HoldReason> {
  return new Map([...sources.values()].flatMap(({ state }) => Object.entries(state.held)))
}

function newestLinks(
  events: readonly ArrivedEvent[],
  known: Iterable<PaymentLink>,
): ReadonlyMap<string, PaymentLink> {
  const links = new Map([...known].map((link) => [link.paymentId, link]))
  for (const { event } of events) {
    const link = linkOf(event)
    if (link !== null && isNewerLink(link, links.get(link.paymentId))) links.set(link.paymentId, link)
  }
  return links
}
