import type { Environment } from '../provider/event.js'
import { type Block, blocksOn } from './blocks.js'
import { entitlementOf } from './entitlement.js'
import { explainHold, explainSource } from './explain-source.js'
import { summaryOf } from './explain-summary.js'
import { END_REASON_TEXT, nameOfSource, time } from './explain-words.js'
import type { ComingEnd, ExplainedBlock, Explanation, StoredHold, StoredSourceEvent } from './explanation.js'
import type { SourceKey, SourceView } from './model.js'
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
  const { customerId, environment, isKnown } = account
  const concerned = account.sources.filter(({ events }) => concerns(events, productId))
  const explained = concerned.map(({ key, events }) => explainSource(key, events, policy))
  const states = explained.map(({ state }) => state)
  const entitlement = entitlementOf(productId, states, account.blocks, instant)
  const sources = explained.map(({ source }) => source)
  const held = [...explained.flatMap((one) => one.held), ...account.holds.map(explainHold)]
  const asOf = 'at' in instant ? instant.at : instant.now
  const summary = summaryOf({ customerId, environment, isKnown, asOf, entitlement, sources, held })
  const blocks = blocksOn(productId, account.blocks, instant).map(explainBlock)
  const ends = entitlement.sources.flatMap(comingEnds)
  return { customerId, productId, environment, asOf, entitlement, summary, sources, held, blocks, ends }
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

function comingEnds(view: SourceView): ComingEnd[] {
  const { kind, id, active, until, reason, eventId, cancelAtPeriodEnd, periodEnd } = view
  const source = { kind, id }
  if (!active) return []
  if (until !== null && reason !== null) {
    const sentence = `Access by ${nameOfSource(source)} ends at ${time(until)}: ${END_REASON_TEXT[reason]}.`
    return [{ source, at: until, reason, eventId, sentence }]
  }
  if (!cancelAtPeriodEnd) return []
  const when = periodEnd === null ? 'when its period ends' : `when its period ends, at ${time(periodEnd)}`
  const sentence = `The ${nameOfSource(source)} is to be canceled ${when}; access goes on until it is.`
  return [{ source, at: periodEnd, reason: 'canceled', eventId: null, sentence }]
}
