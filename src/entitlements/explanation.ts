import type { Environment } from '../provider/event.js'
import type { Block } from './blocks.js'
import type { Outcome } from './disposition.js'
import type { Erasure } from './erasures.js'
import type { Change, Note } from './explain-note.js'
import type { FoldableEvent } from './fold-source.js'
import type { AccessInterval, EndReason, Entitlement, HoldReason, SourceKey, SourceState } from './model.js'
import type { PolicyRow } from './reading.js'

/** What a store knows of an event beside what the event says. Instants are epoch milliseconds. */
export interface StoredSourceEvent {
  readonly event: FoldableEvent
  readonly receivedAt: number
  readonly disposition: Outcome['disposition']
}

/** A held event that no source of the customer accounts for. */
export interface StoredHold extends StoredSourceEvent {
  readonly source: SourceKey | null
  readonly reason: HoldReason
}

export interface ExplainedEvent {
  readonly id: string
  readonly type: FoldableEvent['type']
  readonly createdAt: number
  readonly receivedAt: number
  readonly disposition: Outcome['disposition']
  /** The row of the policy that it met; null: none. */
  readonly row: PolicyRow | null
  /** Why it counted, or why it did not. */
  readonly note: Note
  readonly changes: readonly Change[]
  /** The note and the changes, in words. */
  readonly sentence: string
}

/** A source of the customer that gave the product, or could have. */
export interface ExplainedSource extends Pick<SourceState, 'kind' | 'id' | 'rail' | 'customerId'> {
  readonly intervals: readonly AccessInterval[]
  /** Every stored event of the source once, in the order in which they count. */
  readonly events: readonly ExplainedEvent[]
}

export interface ExplainedHold extends Pick<ExplainedEvent, 'id' | 'type' | 'createdAt' | 'receivedAt'> {
  /** Null: it names neither a subscription nor a payment. */
  readonly source: SourceKey | null
  readonly reason: HoldReason
  readonly sentence: string
}

/** A block that stands or stood on the product, or on every one. */
export interface ExplainedBlock extends Block {
  readonly sentence: string
}

/** That the customer was erased, and what that did. */
export interface ExplainedErasure extends Erasure {
  readonly sentence: string
}

/** An end of access that lies ahead. */
export interface ComingEnd {
  readonly source: SourceKey
  readonly at: number | null
  readonly reason: EndReason
  /** What set the end; null: it is only announced, and an event has still to set it. */
  readonly eventId: string | null
  readonly sentence: string
}

/** Why one customer may or may not use one product: every event that counted, and every one that did not. */
export interface Explanation {
  readonly customerId: string
  readonly productId: string
  readonly environment: Environment
  readonly asOf: number
  readonly entitlement: Entitlement
  readonly summary: string
  readonly sources: readonly ExplainedSource[]
  readonly held: readonly ExplainedHold[]
  readonly blocks: readonly ExplainedBlock[]
  readonly erasures: readonly ExplainedErasure[]
  readonly ends: readonly ComingEnd[]
}
