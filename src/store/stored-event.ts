/* What is shown of a stored event, and in words why it waits or can't be used. */

import type { Outcome } from '../entitlements/derive.js'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import { HOLD_REASON_TEXT } from '../entitlements/reasons.js'
import type { Environment, Generation, NormalizedEvent, QuarantineReason } from '../provider/event.js'

/** Which stored events of one environment are meant; null: all. Instants are epoch milliseconds. */
export interface EventFilter {
  readonly environment: Environment
  readonly disposition: StoredEvent['disposition'] | null
  /** The canonical type: `payment.succeeded`, for either generation. */
  readonly type: string | null
  /** The customer that the event itself names. */
  readonly customerId: string | null
  readonly endpoint: string | null
  /** First received at this instant or after it. */
  readonly from: number | null
  /** First received before this instant. */
  readonly to: number | null
}

/** `expired`: it was older than bodies are kept. `erased`: whom it named is. `redacted`: only what it told of them is gone. */
export type BodyRemovalReason = 'expired' | 'erased' | 'redacted'

/** That the bytes of an event are not there any more, or not as they came, and since when (epoch milliseconds). */
export interface BodyRemoval {
  readonly why: BodyRemovalReason
  readonly at: number
}

/** The same of an event, with what came. */
interface RemovedOriginal extends BodyRemoval {
  /** Lower-case hex. */
  readonly sha256: string
  readonly bytes: number
}

/** One event as it is stored. Instants are epoch milliseconds. */
export interface StoredEvent {
  /** The `evt_` id, `man_` for what was done by hand, or `sha256:<hex>` of a body without a usable id. */
  readonly id: string
  readonly environment: Environment
  readonly endpoint: string
  /** Null, like `type` and `createdAt`, where the event could not be read. */
  readonly generation: Generation | null
  readonly type: string | null
  readonly disposition: Outcome['disposition'] | 'quarantined'
  /** Why it is held or quarantined; null otherwise. */
  readonly reason: HoldReason | QuarantineReason | null
  readonly createdAt: number | null
  readonly receivedAt: number
  readonly lastReceivedAt: number
  readonly deliveries: number
  readonly customerId: string | null
  readonly source: SourceKey | null
  /** How many other bodies came under this id. */
  readonly conflicts: number
  readonly normalizerVersion: number
  /** Of the bytes that are there, in lower-case hex; of those that came, where none are. */
  readonly bodySha256: string
  /** Of the same bytes. */
  readonly bodyBytes: number
  /** Null: the body is there, byte for byte. */
  readonly bodyRemoved: RemovedOriginal | null
}

/** Another body that came under the id of a stored event, and changed nothing. */
export interface OtherBody {
  /** As it came, by which it is asked for, whatever is left of it; lower-case hex. */
  readonly sha256: string
  /** As it came, like its hash. */
  readonly bytes: number
  readonly endpoint: string
  /** Epoch milliseconds. */
  readonly receivedAt: number
  readonly deliveries: number
  /** Null: it is there, byte for byte. */
  readonly removed: BodyRemoval | null
}

/** All that is known of one stored event but its bytes. Personal data: never logged. */
export interface StoredEventDetail extends StoredEvent {
  /** `reason` in words. */
  readonly reasonText: string | null
  /** Null where the event could not be read. */
  readonly normalized: NormalizedEvent | null
  /** As received; null for what was done by hand. */
  readonly headers: {
    readonly event: string | null
    readonly timestamp: string
    readonly signature: string
  } | null
  /** In the order in which they came: of many, the first. */
  readonly otherBodies: readonly OtherBody[]
}

export interface EventPageQuery {
  readonly filter: EventFilter
  /** The page holds what arrived before; null: up to the newest. */
  readonly before: number | null
  /** At most so many. */
  readonly limit: number
}

/** A stretch of the stored events, newest first. */
export interface EventPage {
  readonly items: readonly StoredEvent[]
  /**
   * Where the next page begins, as its `before`; null: there is none. A page may hold fewer than asked for, or none,
   * and still have a next one: looking further would have taken too long.
   */
  readonly next: number | null
}

export interface EventQuery {
  readonly environment: Environment
  readonly eventId: string
}

export interface EventBodyQuery extends EventQuery {
  /** Which of the bodies that came under this id, by its hash in lower-case hex; null: the event's own. */
  readonly sha256: string | null
}

export interface EventBody {
  /** Of `bytes`, in lower-case hex; if they are gone, of what came. */
  readonly sha256: string
  /** Exactly as they came, unless `removed` says otherwise; null: they are gone. */
  readonly bytes: Buffer | null
  readonly removed: BodyRemoval | null
}

const QUARANTINE_REASON_TEXT: Readonly<Record<QuarantineReason, string>> = {
  not_utf8: 'can not be used, since its bytes are no UTF-8 text',
  not_json: 'can not be used, since its body is not JSON',
  not_an_object: 'can not be used, since its body is no JSON object',
  nested_too_deep: 'can not be used, since its body is nested too deep',
  duplicate_keys: 'can not be used, since its body has a key twice, and nobody knows which one counts',
  id_invalid: 'can not be used, since it has no id that could be kept',
  created_at_invalid: 'can not be used, since it does not tell when it happened',
  created_at_in_future: 'can not be used, since it is dated more than a day ahead of its receipt',
  livemode_mismatch: 'can not be used, since it is about another environment than its endpoint',
  reference_id_invalid: 'can not be used, since an id that it names could not be kept',
  normalizer_failed: 'can not be used, since reading it failed by a bug',
}

/** What an event waits for, or why it can't be used. */
export const REASON_TEXT: Readonly<Record<HoldReason | QuarantineReason, string>> = {
  ...HOLD_REASON_TEXT,
  ...QUARANTINE_REASON_TEXT,
}
