/* Explains why a customer may or may not use a product: the fold reports the effect of each event, in words. */

import type { Environment } from '../provider/event.js'
import { compareByTime } from '../provider/order.js'
import { afterErasures, blocksOn } from './by-hand.js'
import type { Outcome } from './derive.js'
import { entitlementOf } from './entitlement.js'
import { foldSource } from './fold-source.js'
import type {
  Block,
  ByHand,
  EndReason,
  Erasure,
  FoldableEvent,
  HoldReason,
  Instant,
  SourceKey,
  SourceView,
} from './model.js'
import type { Policy } from './policy.js'
import { endReasonText, type Step, sentenceOf, time } from './reasons.js'

/** What the store adds to an event. Instants are epoch milliseconds. */
export interface StoredSourceEvent extends ByHand {
  readonly event: FoldableEvent
  readonly receivedAt: number
  readonly disposition: Outcome['disposition']
}

export interface StoredHold extends StoredSourceEvent {
  /** Null: it names neither a subscription nor a payment. */
  readonly source: SourceKey | null
  readonly reason: HoldReason
}

/** Everything stored about one customer, for a question about one product. */
export interface StoredAccount {
  readonly customerId: string
  readonly environment: Environment
  /** Whether any event names the customer. */
  readonly isKnown: boolean
  /** With all stored events of each, each once, in any order. */
  readonly sources: readonly { readonly key: SourceKey; readonly events: readonly StoredSourceEvent[] }[]
  readonly blocks: readonly Block[]
  readonly erasures: readonly Erasure[]
  /** Held events that belong to no source of the customer, but may turn out to. */
  readonly holds: readonly StoredHold[]
}

/** Why one customer may or may not use one product: every event that counted, and every one that did not. */
export type Explanation = ReturnType<typeof explain>

export function explain(account: StoredAccount, productId: string, instant: Instant, policy: Policy) {
  const explained = explainParts(account, productId, instant, policy)
  return { ...explained, summary: summaryOf(explained, account.isKnown) }
}

type Explained = ReturnType<typeof explainParts>

function explainParts(account: StoredAccount, productId: string, instant: Instant, policy: Policy) {
  const { customerId, environment, blocks, erasures } = account
  const explained = account.sources
    .filter(({ events }) => concerns(events, productId))
    .map(({ key, events }) => explainSource(key, events, erasures, policy))
  const states = explained.map(({ state }) => state)
  const entitlement = entitlementOf(productId, states, blocks, instant)
  const waiting = account.holds.map(({ event, receivedAt, source, reason }) => {
    const { id, type, createdAt } = event
    const sentence = sentenceOf({ event, note: { code: 'held', reason }, changes: [] }, source)
    return { id, type, createdAt, receivedAt, customerId: event.customerId, source, reason, sentence }
  })
  const held = [...explained.flatMap((one) => one.held), ...waiting]
  return {
    customerId,
    productId,
    environment,
    /** Epoch milliseconds. */
    asOf: 'at' in instant ? instant.at : instant.now,
    entitlement,
    /** Sources that gave the product, or could have; every stored event once, in walk order. */
    sources: explained.map(({ source }) => source),
    held: held.sort(compareByTime),
    /** On the product, or on every one; includes lifted blocks. */
    blocks: blocksOn(productId, blocks, instant).map(explainBlock),
    erasures: erasures.map((erasure) => ({
      ...erasure,
      sentence: `${customerId} was erased at ${time(erasure.at)}: access from before that ended then.`,
    })),
    /** Future ends. */
    ends: entitlement.sources.flatMap((view) => comingEnds(view, erasures)),
  }
}

/** A source, folded again: its state, the effect of each event, and the waiting events. */
function explainSource(
  key: SourceKey,
  stored: readonly StoredSourceEvent[],
  erasures: readonly Erasure[],
  policy: Policy,
) {
  const steps: Step[] = []
  const folded = foldSource(
    key,
    stored.map(({ event }) => event),
    policy,
    (step) => steps.push(step),
  )
  const storedAs = new Map(stored.map((one) => [one.event.id, one]))
  const { customerId } = folded
  const events = steps.flatMap(({ event, row, ...walked }) => {
    const known = storedAs.get(event.id)
    if (known === undefined) return []
    const { id, type, createdAt } = event
    const reason = folded.held[id]
    // A waiting event has no effect yet, although the walk includes it.
    const did = reason === undefined ? walked : { note: { code: 'held', reason } as const, changes: [] }
    const { event: _, ...stored } = known
    const sentence = `${sentenceOf({ event, ...did }, key)}${byHandText(stored)}`
    return [{ id, type, createdAt, row, ...stored, ...did, sentence }]
  })
  const held = events.flatMap(({ id, type, createdAt, receivedAt, note, sentence }) =>
    note.code === 'held'
      ? [{ id, type, createdAt, receivedAt, customerId, source: key, reason: note.reason, sentence }]
      : [],
  )
  const state = afterErasures(folded, erasures)
  const { kind, id, rail, intervals } = state
  return { state, source: { kind, id, rail, customerId, intervals, events }, held }
}

/** Whether the source gave the product or could have: it names the product, or no product at all. */
function concerns(events: readonly StoredSourceEvent[], productId: string): boolean {
  const named = events.map(({ event }) => event.productId).filter((id) => id !== null)
  return named.length === 0 || named.includes(productId)
}

function explainBlock(block: Block) {
  const what = block.productId === null ? 'Every product' : block.productId
  const end = block.until === null ? 'until it is unblocked' : `to ${time(block.until)}`
  return { ...block, sentence: `${what} is blocked from ${time(block.from)} ${end}.${byHandText(block)}` }
}

/** ` By ada: chargeback under review.` */
function byHandText({ actor, reason }: ByHand): string {
  if (actor === undefined) return ''
  return ` By ${actor}${reason == null ? '' : `: ${reason}`}.`
}

/** `eventId`: the event that set the end; null: it is only announced, and another event must set it. */
export interface ComingEnd {
  readonly source: SourceKey
  readonly reason: EndReason
  readonly at: number | null
  readonly eventId: string | null
  readonly sentence: string
}

function comingEnds(view: SourceView, erasures: readonly Erasure[]): ComingEnd[] {
  const { kind, id, active, until, reason, eventId, cancelAtPeriodEnd, periodEnd } = view
  const source = { kind, id }
  if (!active) return []
  if (until !== null && reason !== null) {
    const sentence = `Access through ${nameOf(source)} ends at ${time(until)}: ${endText(view, erasures)}.`
    return [{ source, at: until, reason, eventId, sentence }]
  }
  if (!cancelAtPeriodEnd) return []
  const when = periodEnd === null ? 'when its period ends' : `when its period ends, at ${time(periodEnd)}`
  const sentence = `The ${nameOf(source)} will be canceled ${when}; access continues until then.`
  return [{ source, at: periodEnd, reason: 'canceled', eventId: null, sentence }]
}

/** Why access is as it is, in one or two sentences. */
function summaryOf(explanation: Explained, isKnown: boolean): string {
  const { customerId, environment, entitlement } = explanation
  if (!isKnown) return `Nothing is known about ${customerId} in ${environment}: no event names them.`
  if (entitlement.active) return summaryOfActive(explanation)
  return entitlement.status === 'none' ? summaryOfNone(explanation) : summaryOfEnded(explanation)
}

function summaryOfActive({ customerId, productId, entitlement, erasures }: Explained): string {
  const { since, until, pastDue, sources } = entitlement
  const active = sources.filter((source) => source.active)
  const by = active.map(nameOf).join(' and ')
  const access = `${customerId} has had access to ${productId} since ${time(Number(since))}, through ${by}.`
  const last = active.findLast((source) => source.until === until)
  if (until !== null) return `${access} It ends at ${time(until)}: ${endText(last, erasures)}.`
  if (pastDue) return `${access} A payment is overdue, and access continues until the subscription ends.`
  return `${access} No end is known.`
}

function summaryOfEnded({ customerId, productId, entitlement, erasures }: Explained): string {
  const { status, until, sources } = entitlement
  if (status === 'blocked') return `${customerId} is blocked from ${productId}.`
  const last = sources.findLast((source) => source.until === until)
  if (last === undefined) return `${customerId} has no access to ${productId}.`
  return `${customerId} has had no access to ${productId} since ${time(Number(until))}: ${endText(last, erasures)} (${last.eventId} of ${nameOf(last)}).`
}

function summaryOfNone({ customerId, productId, asOf, sources, held }: Explained): string {
  const intervals = sources.flatMap((source) => source.intervals)
  if (intervals.some((interval) => interval.productId === productId)) {
    return `${customerId} had not yet been given access to ${productId} at ${time(asOf)}.`
  }
  const never = `${customerId} has never had access to ${productId}`
  const waiting = held.filter((event) => event.customerId !== null).length
  if (waiting === 1) return `${never}. One event is waiting.`
  if (waiting > 1) return `${never}. ${waiting} events are waiting.`
  const events = sources.flatMap((source) => source.events).sort((a, b) => a.createdAt - b.createdAt)
  // The newest event that is more than information explains most; else the newest.
  const decisive = events.findLast(({ note }) => note.code !== 'informed') ?? events.at(-1)
  return decisive === undefined
    ? `${never}: none of their events is about it.`
    : `${never}. ${decisive.sentence}`
}

/** Why access by a source ends or ended; an erasure counts before the source's own reason. */
function endText(source: SourceView | undefined, erasures: readonly Erasure[]): string {
  if (erasures.some(({ eventId }) => eventId === source?.eventId)) return 'the customer was erased'
  return source?.reason ? endReasonText(source.reason, source.kind) : 'the reason is not known'
}

/** What people call a source; the id of a manual grant is of no use to them. */
function nameOf({ kind, id }: SourceKey): string {
  return kind === 'manual' ? 'a manual grant' : `${kind} ${id}`
}
