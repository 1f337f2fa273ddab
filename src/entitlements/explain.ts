import type { Environment } from '../provider/event.js'
import { type Block, blocksOn } from './blocks.js'
import { entitlementOf } from './entitlement.js'
import { afterErasures, type Erasure } from './erasures.js'
import { explainHold, explainSource } from './explain-source.js'
import { summaryOf } from './explain-summary.js'
import { endText, nameOfSource, time } from './explain-words.js'
import type {
  ComingEnd,
  ExplainedBlock,
  ExplainedErasure,
  Explanation,
  StoredHold,
  StoredSourceEvent,
} from './explanation.js'
import type { SourceKey, SourceView } from './model.js'
import { compareByTime } from './order.js'
import type { Policy } from './policy.js'
import type { Instant } from './source-view.js'

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

/** Explains why the customer may use the product, or may not: the same fold as ever, telling what it does. */
export function explain(
  account: StoredAccount,
  productId: string,
  instant: Instant,
  policy: Policy,
): Explanation {
  const { customerId, environment, isKnown, erasures } = account
  const concerned = account.sources.filter(({ events }) => concerns(events, productId))
  const explained = concerned.map(({ key, events }) => explainSource(key, events, policy))
  const states = explained.map(({ state }) => afterErasures(state, erasures))
  const entitlement = entitlementOf(productId, states, account.blocks, instant)
  const sources = explained.map(({ source }, index) => ({
    ...source,
    intervals: states[index]?.intervals ?? [],
  }))
  const held = [...explained.flatMap((one) => one.held), ...account.holds.map(explainHold)]
  const asOf = 'at' in instant ? instant.at : instant.now
  const blocks = blocksOn(productId, account.blocks, instant).map(explainBlock)
  const erased = erasures.map((erasure) => explainErasure(customerId, erasure))
  const ends = entitlement.sources.flatMap((view) => comingEnds(view, erasures))
  const told = {
    customerId,
    environment,
    asOf,
    entitlement,
    sources,
    held: held.sort(compareByTime),
    erasures: erased,
  }
  return { ...told, productId, summary: summaryOf({ ...told, isKnown }), blocks, ends }
}

/** Whether the source gave the product or could have: it names it somewhere, or nowhere says which it is for. */
function concerns(events: readonly StoredSourceEvent[], productId: string): boolean {
  const named = events.map(({ event }) => event.productId).filter((id) => id !== null)
  return named.length === 0 || named.includes(productId)
}

function explainBlock(block: Block): ExplainedBlock {
  const what = block.productId === null ? 'Every product' : block.productId
  const end = block.until === null ? 'until it is unblocked' : `to ${time(block.until)}`
  return { ...block, sentence: `${what} is blocked from ${time(block.from)} ${end}.` }
}

function explainErasure(customerId: string, erasure: Erasure): ExplainedErasure {
  const sentence = `${customerId} was erased at ${time(erasure.at)}: access that began before ended with that.`
  return { ...erasure, sentence }
}

function comingEnds(view: SourceView, erasures: readonly Erasure[]): ComingEnd[] {
  const { kind, id, active, until, reason, eventId, cancelAtPeriodEnd, periodEnd } = view
  const source = { kind, id }
  if (!active) return []
  if (until !== null && reason !== null) {
    const sentence = `Access by ${nameOfSource(source)} ends at ${time(until)}: ${endText({ reason, eventId }, erasures)}.`
    return [{ source, at: until, reason, eventId, sentence }]
  }
  if (!cancelAtPeriodEnd) return []
  const when = periodEnd === null ? 'when its period ends' : `when its period ends, at ${time(periodEnd)}`
  const sentence = `The ${nameOfSource(source)} is to be canceled ${when}; access goes on until it is.`
  return [{ source, at: periodEnd, reason: 'canceled', eventId: null, sentence }]
}
