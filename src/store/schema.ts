import type { Generated } from 'kysely'
import type { EntitlementStatus, HoldReason, SourceKind } from '../entitlements/model.js'
import type { Environment, Generation, QuarantineReason } from '../provider/event.js'

/**
 * The tables as they are stored. Instants are epoch milliseconds, booleans 0 and 1, and JSON is text;
 * the file of each table converts, so that nothing outside the store sees a row.
 */
export interface Database {
  events: EventsTable
  event_conflicts: EventConflictsTable
  payment_links: PaymentLinksTable
  sources: SourcesTable
  entitlements: EntitlementsTable
  changes: ChangesTable
  customers: CustomersTable
  customer_references: CustomerReferencesTable
  settings: SettingsTable
  erasures: ErasuresTable
  /** Events whose bodies are old enough to go, and stay while the events wait for something. */
  waiting_bodies: { seq: number }
  memberships: MembershipsTable
  sync_marks: SyncMarksTable
  join_links: JoinLinksTable
  moved_groups: MovedGroupsTable
  owed_unbans: OwedUnbansTable
  messages: MessagesTable
  delivery_pace: DeliveryPaceTable
}

/** What became of a stored event; a duplicate is not stored again. */
export type StoredDisposition = 'applied' | 'ignored' | 'held' | 'quarantined'

/** `expired`: it was older than bodies are kept. `erased`: whom it named is. `redacted`: only what it told of them is gone. */
export type BodyRemovalReason = 'expired' | 'erased' | 'redacted'

/** What is stored of each body that came. */
export interface BodyColumns {
  environment: Environment
  /** The `evt_` id, or `sha256:<hex>` of the body where it has no usable id. */
  event_id: string
  endpoint: string
  received_at: number
  headers: string
  /** As it came, unless `body_removed` says otherwise; null: it is there no more. */
  body: Buffer | null
  body_sha256: string
  /** Why the body is not as it came, with since when and how long it was; null, all three: it is. */
  body_removed: BodyRemovalReason | null
  body_removed_at: number | null
  body_bytes: number | null
}

/** Every signed event, once per (environment, event_id); `seq` is the order of arrival. */
export interface EventsTable extends BodyColumns {
  seq: Generated<number>
  deliveries: Generated<number>
  last_received_at: number
  disposition: StoredDisposition
  reason: QuarantineReason | HoldReason | null
  generation: Generation | null
  type: string | null
  created_at: number | null
  normalizer_version: number
  /** Null exactly where quarantined. */
  normalized: string | null
  customer_id: string | null
  /** Set for payment and checkout events only: these move along when their payment is linked. */
  payment_id: string | null
  source_kind: SourceKind | null
  source_id: string | null
}

/** Other bodies that came under the id of a stored event. */
export interface EventConflictsTable extends BodyColumns {
  deliveries: number
}

/** The subscription that each payment belongs to, by the newest event that names it. */
export interface PaymentLinksTable {
  environment: Environment
  payment_id: string
  subscription_id: string
  linked_at: number
  linked_by: string
}

export interface SourcesTable {
  /** In the order in which they came to be; the newest, once deleted, leaves its own to the next. */
  seq: Generated<number>
  environment: Environment
  kind: SourceKind
  source_id: string
  customer_id: string | null
  state: string
  /** What the rules read of each of its events, packed: a fold reads no event. */
  history: string
  newest_at: number
}

export interface EntitlementsTable {
  environment: Environment
  customer_id: string
  product_id: string
  active: number
  status: EntitlementStatus
  since: number | null
  until: number | null
  next_change_at: number | null
}

export interface ChangesTable {
  cursor: Generated<number>
  at: number
  environment: Environment
  customer_id: string
  product_id: string
  before: string
  after: string
  cause_kind: 'event' | 'clock' | 'rebuild'
  cause_event_id: string | null
}

/** `facts` holds everything that is known, and who told; the other columns are copies to look up by. */
export interface CustomersTable {
  environment: Environment
  customer_id: string
  facts: string
  /** Lower case. */
  email: string | null
  community_id: string | null
  messenger_id: string | null
  deleted_at: number | null
}

/** Every reference of the merchant's own that any event of a customer carried, not only the newest. */
export interface CustomerReferencesTable {
  environment: Environment
  /** `externalRef`, or `metadata.<key>`. */
  name: string
  value: string
  customer_id: string
}

/** How often new events come to each endpoint: a row is read and written whole. */
export interface DeliveryPaceTable {
  endpoint: string
  pace: string
}

export interface SettingsTable {
  key: string
  value: string
}

/** Everybody who was erased. */
export interface ErasuresTable {
  environment: Environment
  customer_id: string
  event_id: string
  erased_at: number
  /** 1: a purchase, an act or a detail of theirs was stored. Told once the erasure is finished. */
  was_known: 0 | 1
  /** When what is stored of them was removed; null: not all of it is. */
  finished_at: number | null
}

/** One `Membership` each. */
export interface MembershipsTable {
  environment: Environment
  target: string
  account_id: string
  customer_id: string
  /** As `SHOWN_AS` explains. */
  state: 'due' | 'retrying' | 'recheck' | 'waiting' | 'stuck' | 'parked' | 'gone' | 'settled'
  desired: number
  desired_since: number
  /** JSON */
  reason: string | null
  applied: 'unknown' | 'member' | 'absent'
  applied_at: number | null
  given: number
  confirmed: Generated<number>
  attempts: Generated<number>
  next_attempt_at: number | null
  /** Both null since the last success. */
  error_code: string | null
  error: string | null
}

/** Customers whose memberships are to be worked out again, in the order in which they were marked. */
export interface SyncMarksTable {
  seq: Generated<number>
  environment: Environment
  customer_id: string
}

/** Changes of access that the outbound webhook has not delivered yet. */
export interface MessagesTable {
  /** Of the change. */
  cursor: number
  /** Of the change log when it was queued: a restored store gives cursors again. */
  epoch: string
  environment: Environment
  customer_id: string
  queued_at: number
  first_attempt_at: number | null
  attempts: Generated<number>
  /** Null: it waits for an earlier message of its customer, or is parked. */
  next_attempt_at: number | null
  /** Why it is not sent any more. */
  parked: 'gone' | 'given_up' | null
  last_error: string | null
}

/** Links that were made for one customer each: tokens to link an account with, and invites to a group. */
export interface JoinLinksTable {
  sha256: string
  kind: 'token' | 'invite'
  environment: Environment
  customer_id: string
  expires_at: number
  /** The first account that used it. */
  used_by: string | null
}

/** Groups that got another id, by the id in the config. */
export interface MovedGroupsTable {
  group_id: string
  moved_to: string
}

/** Bans that Latchkey may have begun and not lifted yet. */
export interface OwedUnbansTable {
  group_id: string
  account_id: string
}

/** One text for one event of one environment; no environment holds a space, so no two events share it. */
export function eventKey(environment: Environment, eventId: string): string {
  return `${environment} ${eventId}`
}

/** A stretch of a list that is ordered by id: at most `limit` ids, all after `after` (empty: from the first). */
export interface IdPage {
  readonly after: string
  readonly limit: number
}

export const EVERY_ID: IdPage = { after: '', limit: Number.MAX_SAFE_INTEGER }

/** In the order in which keys sort. */
export const ENVIRONMENTS: readonly Environment[] = ['live', 'sandbox']
