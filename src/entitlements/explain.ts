/* Answers why a customer may use a product, or may not. */

import type { Environment } from '../provider/event.js'
import { afterErasures, blocksOn } from './by-hand.js'
import { entitlementOf } from './entitlement.js'
import {
  type ExplainedEvent,
  type ExplainedHold,
  type ExplainedSource,
  explainHold,
  explainSource,
  type StoredHold,
  type StoredSourceEvent,
} from './explain-source.js'
import type { Block, EndReason, Entitlement, Erasure, Instant, SourceKey, SourceView } from './model.js'
import { compareByTime } from './order.js'
import type { Policy } from './policy.js'
import { END_REASON_TEXT, time } from './reasons.js'

/** All that is stored of one customer, for a question about one product. */
export interface StoredAccount {
  readonly customerId: string
  readonly environment: Environment
  /** Whether any event names the customer. */
  readonly isKnown: boolean
  readonly sources: readonly { readonly key: SourceKey; readonly events: readonly StoredSourceEvent[] }[]
  readonly blocks: readonly Block[]
  readonly erasures: readonly Erasure[]
  /** Held events of no source of theirs that may yet turn out to be theirs. */
  readonly holds: readonly StoredHold[]
}

interface InWords {
  readonly sentence: string
}

/** An end of access that lies ahead. */
interface ComingEnd extends InWords {
  readonly source: SourceKey
  readonly at: number | null
  readonly reason: EndReason
  /** What set the end; null: it is only announced, and an event has still to set it. */
  readonly eventId: string | null
}

/** Why one customer may or may not use one product: every event that counted, and every one that did not. */
export interface Explanation {
  readonly customerId: string
  readonly productId: string
  readonly environment: Environment
  /** Epoch milliseconds. */
  readonly asOf: number
  readonly entitlement: Entitlement
  readonly summary: string
  readonly sources: readonly ExplainedSource[]
  readonly held: readonly ExplainedHold[]
  /** On the product, or on every one; those that were lifted too. */
  readonly blocks: readonly (Block & InWords)[]
  readonly erasures: readonly (Erasure & InWords)[]
  readonly ends: readonly ComingEnd[]
}

/** Explains why the customer may use the product, or may not: the fold itself reports what each event does. */
export function explain(
  account: StoredAccount,
  productId: string,
  instant: Instant,
  policy: Policy,
): Explanation {
  const { customerId, environment, erasures } = account
  const explained = account.sources
    .filter(({ events }) => concerns(events, productId))
    .map(({ key, events }) => explainSource(key, events, policy))
    .map((one) => ({ ...one, state: afterErasures(one.state, erasures) }))
  const states = explained.map(({ state }) => state)
  const entitlement = entitlementOf(productId, states, account.blocks, instant)
  const held = [...explained.flatMap((one) => one.held), ...account.holds.map(explainHold)]
  const answer = {
    customerId,
    environment,
    asOf: 'at' in instant ? instant.at : instant.now,
    entitlement,
    sources: explained.map(({ source, state }) => ({ ...source, intervals: state.intervals })),
    held: held.sort(compareByTime),
    erasures: erasures.map((erasure) => ({
      ...erasure,
      sentence: `${customerId} was erased at ${time(erasure.at)}: access that began before ended with that.`,
    })),
  }
  return {
    ...answer,
    productId,
    summary: summaryOf(answer, account.isKnown),
    blocks: blocksOn(productId, account.blocks, instant).map(explainBlock),
    ends: entitlement.sources.flatMap((view) => comingEnds(view, erasures)),
  }
}

/** Whether the source gave the product or could have: it names it somewhere, or nowhere says which it is for. */
function concerns(events: readonly StoredSourceEvent[], productId: string): boolean {
  const named = events.map(({ event }) => event.productId).filter((id) => id !== null)
  return named.length === 0 || named.includes(productId)
}

function explainBlock(block: Block): Block & InWords {
  const what = block.productId === null ? 'Every product' : block.productId
  const end = block.until === null ? 'until it is unblocked' : `to ${time(block.until)}`
  return { ...block, sentence: `${what} is blocked from ${time(block.from)} ${end}.` }
}

function comingEnds(view: SourceView, erasures: readonly Erasure[]): ComingEnd[] {
  const { kind, id, active, until, reason, eventId, cancelAtPeriodEnd, periodEnd } = view
  const source = { kind, id }
  if (!active) return []
  if (until !== null && reason !== null) {
    const sentence = `Access by ${nameOf(source)} ends at ${time(until)}: ${endText(view, erasures)}.`
    return [{ source, at: until, reason, eventId, sentence }]
  }
  if (!cancelAtPeriodEnd) return []
  const when = periodEnd === null ? 'when its period ends' : `when its period ends, at ${time(periodEnd)}`
  const sentence = `The ${nameOf(source)} is to be canceled ${when}; access goes on until it is.`
  return [{ source, at: periodEnd, reason: 'canceled', eventId: null, sentence }]
}

type Answer = Omit<Explanation, 'productId' | 'summary' | 'blocks' | 'ends'>

/** Why access is as it is, in one or two sentences. */
function summaryOf(answer: Answer, isKnown: boolean): string {
  const { customerId, environment, entitlement } = answer
  if (!isKnown) return `Nothing is known of ${customerId} in ${environment}: no event names them.`
  if (entitlement.active) return summaryOfActive(answer)
  return entitlement.status === 'none' ? summaryOfNone(answer) : summaryOfEnded(answer)
}

function summaryOfActive({ customerId, entitlement, erasures }: Answer): string {
  const { productId, since, until, pastDue, sources } = entitlement
  const active = sources.filter((source) => source.active)
  const by = active.map(nameOf).join(' and ')
  const access = `${customerId} has access to ${productId}${since === null ? '' : ` since ${time(since)}`}, by ${by}.`
  if (until !== null)
    return `${access} It ends at ${time(until)}: ${endText(lastTo(until, active), erasures)}.`
  if (pastDue) return `${access} A payment is overdue, and access goes on until the subscription is over.`
  return `${access} No end is known.`
}

function summaryOfEnded({ customerId, entitlement, erasures }: Answer): string {
  const { productId, status, until, sources } = entitlement
  if (status === 'blocked') return `${customerId} is blocked from ${productId}.`
  const ended = `${customerId} has no access to ${productId}`
  const last = lastTo(until, sources)
  if (until === null || last === undefined) return `${ended}.`
  return `${ended} since ${time(until)}: ${endText(last, erasures)} (${last.eventId} of ${nameOf(last)}).`
}

function summaryOfNone({ customerId, asOf, entitlement: { productId }, sources, held }: Answer): string {
  const intervals = sources.flatMap((source) => source.intervals)
  if (intervals.some((interval) => interval.productId === productId)) {
    return `${customerId} had not been given access to ${productId} by ${time(asOf)}.`
  }
  const never = `${customerId} has never had access to ${productId}`
  if (held.length > 0)
    return `${never}. ${held.length === 1 ? 'One event waits' : `${held.length} events wait`}.`
  const telling = mostTelling(sources.flatMap(({ events }) => events))
  return telling === undefined ? `${never}: no event of theirs is about it.` : `${never}. ${telling.sentence}`
}

/** The newest event that was more than information; else the newest. */
function mostTelling(events: readonly ExplainedEvent[]): ExplainedEvent | undefined {
  const oldestFirst = [...events].sort((a, b) => a.createdAt - b.createdAt)
  return oldestFirst.findLast(({ note }) => note.code !== 'informed') ?? oldestFirst.at(-1)
}

function lastTo(until: number | null, sources: readonly SourceView[]): SourceView | undefined {
  return sources.findLast((source) => source.until === until)
}

/** Why access by a source ends or ended: what an erasure ended was not taken back for itself. */
function endText(source: SourceView | undefined, erasures: readonly Erasure[]): string {
  if (source === undefined || source.reason === null) return 'no reason is known'
  const isErasure = erasures.some(({ eventId }) => eventId === source.eventId)
  return isErasure ? 'the customer was erased' : END_REASON_TEXT[source.reason]
}

/** What people call a source; of what was granted by hand, the id says nothing that they don't know. */
function nameOf({ kind, id }: SourceKey): string {
  return kind === 'manual' ? 'a grant by hand' : `${kind} ${id}`
}
