/* Derives all state from a set of events: links, sources, and the disposition of each event. */

import type { NormalizedEvent } from '../provider/event.js'
import { foldSource } from './fold-source.js'
import { type HistoryEvent, historyEvent, packHistory } from './history.js'
import type { HoldReason, SourceKey, SourceState } from './model.js'
import { isDecisive, type Policy } from './policy.js'
import { isNewerLink, linkOf, type PaymentLink, sourceKey, sourceOf } from './source-of.js'

/**
 * The version of the rules in this folder. Raise it when the same events would give other access: a daemon then rebuilds
 * a store that older rules have folded.
 */
export const RULES_VERSION = 2

/** An event, and its number in the order of arrival. */
export interface ArrivedEvent {
  readonly seq: number
  readonly event: NormalizedEvent
}

/** A source: the state that its events fold to, and the history that the rules read. */
export interface DerivedSource {
  readonly state: SourceState
  /** As `packHistory` writes it. */
  readonly history: string
}

/** The state derived from the events of some sources of one environment. */
export type Derived = Readonly<ReturnType<typeof derive>>

/**
 * Derives everything from the events alone: which subscription each payment belongs to, which source each event
 * belongs to, what each source gives, and the disposition of each event.
 * @param events all events of these sources, each once, in the order of arrival
 * @param known the links of these payments from other events
 */
export function derive(events: readonly ArrivedEvent[], policy: Policy, known: Iterable<PaymentLink> = []) {
  const others = new Map([...known].map((link) => [link.paymentId, link]))
  /** By payment: the newest event that names its subscription. */
  const links = new Map([...others, ...newerLinks(events, others)])
  const subscriptionOf = (paymentId: string) => links.get(paymentId)?.subscriptionId
  /** By event number, as the outcomes. */
  const places = new Map<number, SourceKey | null>()
  const groups = new Map<string, { readonly key: SourceKey; readonly events: HistoryEvent[] }>()
  for (const { seq, event } of events) {
    const key = sourceOf(event, subscriptionOf)
    places.set(seq, key)
    const read = key === null ? null : historyEvent(seq, event)
    if (key === null || read === null) continue
    const name = sourceKey(key)
    const group = groups.get(name) ?? { key, events: [] }
    group.events.push(read)
    groups.set(name, group)
  }
  /** By `sourceKey`. */
  const sources = new Map<string, DerivedSource>()
  const holds = new Map<string, HoldReason>()
  for (const [name, { key, events: own }] of groups) {
    const state = foldSource(key, own, policy)
    sources.set(name, { state, history: packHistory(own) })
    for (const [id, reason] of Object.entries(state.held)) holds.set(id, reason)
  }
  const outcomes = new Map<number, Outcome>()
  for (const { seq, event } of events) {
    outcomes.set(seq, outcomeOf(event, places.get(seq) ?? null, holds.get(event.id), policy))
  }
  return { links, places, outcomes, sources }
}

/** The newest link of each payment in these events, if it is newer than the known one. */
export function newerLinks(events: readonly ArrivedEvent[], known: ReadonlyMap<string, PaymentLink>) {
  const news = new Map<string, PaymentLink>()
  for (const { event } of events) {
    const link = linkOf(event)
    if (link === null) continue
    if (isNewerLink(link, news.get(link.paymentId) ?? known.get(link.paymentId)))
      news.set(link.paymentId, link)
  }
  return news
}

/** The disposition of a readable event. */
export type Outcome =
  | { readonly disposition: 'applied' | 'ignored'; readonly reason: null }
  | { readonly disposition: 'held'; readonly reason: HoldReason }

const APPLIED: Outcome = { disposition: 'applied', reason: null }
const IGNORED: Outcome = { disposition: 'ignored', reason: null }
const WAITS_FOR_SOURCE: Outcome = { disposition: 'held', reason: 'source_unknown' }

/**
 * @param source the source that the event belongs to, if it names one
 * @param hold why it waits, from the fold of its source
 */
export function outcomeOf(
  event: NormalizedEvent,
  source: SourceKey | null,
  hold: HoldReason | undefined,
  policy: Policy,
): Outcome {
  switch (event.subject) {
    case 'payment':
    case 'subscription': {
      const decisive = isDecisive(event.type, policy)
      if (source === null) return decisive ? WAITS_FOR_SOURCE : IGNORED
      if (hold !== undefined) return { disposition: 'held', reason: hold }
      return event.type === 'checkout.initiated' && !decisive ? IGNORED : APPLIED
    }
    case 'manual':
      return APPLIED
    case 'customer':
    case 'other':
      return IGNORED
    default:
      return event satisfies never
  }
}
