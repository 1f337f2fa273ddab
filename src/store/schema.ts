import type { Generated, Kysely, Transaction } from 'kysely'
import type { ChangeType } from '../entitlements/entitlement.js'
import type { EntitlementStatus, HoldReason, SourceKind } from '../entitlements/model.js'
import type { Environment, Generation, QuarantineReason } from '../provider/event.js'

/**
 * The tables as stored. Instants are epoch milliseconds, booleans 0 and 1, and JSON is text; the file of each table
 * converts them, so that nothing outside the store sees a row.
 */
export interface Database {
  events: EventsTable
  /** Other bodies that came under the id of a stored event. */
  event_conflicts: BodyColumns & { deliveries: number }
  /** The subscription of each payment, by the newest event that names it. */
  payment_links: {
    environment: Environment
    payment_id: string
    subscription_id: string
    linked_at: number
    linked_by: string
  }
  sources: SourcesTable
  entitlements: EntitlementsTable
  changes: ChangesTable
  /** On PostgreSQL, where `changes` is a view of it. */
  change_log: ChangesTable
  customers: CustomersTable
  customer_references: CustomerReferencesTable
  /** The newest email, accounts and user names of each customer, by detail: copies of their facts, in lower case where that does not matter. */
  customer_lookups: CustomerReferencesTable
  settings: { key: string; value: string }
  erasures: ErasuresTable
  /** Events with expired bodies that stay while the events wait for something. */
  waiting_bodies: { seq: number }
  memberships: MembershipsTable
  /** Customers whose memberships must be computed again, in the order of marking. */
  sync_marks: { seq: Generated<number>; environment: Environment; customer_id: string }
  join_links: JoinLinksTable
  /** Groups that got another id, by the id in the config. */
  moved_groups: { group_id: string; moved_to: string }
  /** Bans that Latchkey may have begun and not lifted yet. */
  owed_unbans: { group_id: string; account_id: string }
  messages: MessagesTable
  /** How often new events come to each endpoint: a row is read and written whole. */
  delivery_pace: { endpoint: string; pace: string }
  backfill_records: BackfillRecordsTable
  /** Records of the service that were asked for lately, since events wait for what they say. */
  asked_records: { environment: Environment; kind: string; record_id: string; asked_at: number }
}

export type Db = Kysely<Database>
/** For what must be atomic. */
export type Tx = Transaction<Database>

/** The disposition of a stored event; a duplicate is not stored again. */
export type StoredDisposition = 'applied' | 'ignored' | 'held' | 'quarantined'

/**
 * `expired`: older than bodies are kept. `erased`: its customer is. `redacted`: only the data of an erased one is gone.
 */
export type BodyRemovalReason = 'expired' | 'erased' | 'redacted'

/** The stored form of each body. */
export interface BodyColumns {
  environment: Environment
  /** The `evt_` id, or `sha256:<hex>` of the body if it has no usable id. */
  event_id: string
  endpoint: string
  received_at: number
  headers: string
  /** The original, unless `body_removed` is set; null: gone. */
  body: Buffer | null
  body_sha256: string
  /** Why the body is not the original, since when, and its original length; all null if it is. */
  body_removed: BodyRemovalReason | null
  body_removed_at: number | null
  body_bytes: number | null
}

/** Every authentic event, once per (environment, event_id); `seq` is the order of arrival. */
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
  /** Null exactly if quarantined. */
  normalized: string | null
  customer_id: string | null
  /** Only for payment and checkout events: these move to another source when their payment is linked. */
  payment_id: string | null
  source_kind: SourceKind | null
  source_id: string | null
}

export interface SourcesTable {
  /** The order of creation; the number of the newest row is reused if that is deleted. */
  seq: Generated<number>
  environment: Environment
  kind: SourceKind
  source_id: string
  customer_id: string | null
  state: string
  /** The fields of its events that the rules read, packed: a fold needs no other row. */
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

/** `facts` holds everything known, with its events. */
export interface CustomersTable {
  environment: Environment
  customer_id: string
  facts: string
  deleted_at: number | null
}

/** Every reference in any event of a customer, not only the newest. */
export interface CustomerReferencesTable {
  environment: Environment
  /** `externalRef`, or `metadata.<key>`; of a lookup, the detail. */
  name: string
  value: string
  customer_id: string
}

export interface ErasuresTable {
  environment: Environment
  customer_id: string
  event_id: string
  erased_at: number
  /** 1: a purchase, a change or a detail of theirs was stored. Set when the erasure is finished. */
  was_known: 0 | 1
  /** When their data was removed; null: some of it is left. */
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

/** Changes of access for each address of the outbound webhooks, and how their delivery went. */
export interface MessagesTable {
  /** Of the change. */
  cursor: number
  /** The id of the address. */
  webhook: string
  /** Of the change log at the time of queueing: a restored store reuses cursors. */
  epoch: string
  type: ChangeType
  environment: Environment
  customer_id: string
  /** The last time, if it was sent again. */
  queued_at: number
  /** `gone` and `given_up`: it failed, and is not sent any more. */
  status: Generated<'pending' | 'delivered' | 'gone' | 'given_up'>
  first_attempt_at: number | null
  /** Since it was queued, or sent again. */
  attempts: Generated<number>
  /** JSON: the newest attempts. */
  attempt_log: Generated<string>
  /** Null: it waits for an earlier message of its customer, or is not pending. */
  next_attempt_at: number | null
}

/** What a running backfill has read and still needs. */
export interface BackfillRecordsTable {
  environment: Environment
  /**
   * `payment`, `subscription`, `chargeback`: the service has it. `event`: a dry run would report it; `lead`: where such
   * an event belongs, too.
   */
  kind: 'payment' | 'subscription' | 'chargeback' | 'event' | 'lead'
  /** Of the record; of an event or a lead, what it belongs to, such as `subscription sub_1`. */
  id: string
  /** The id of the event; of a record, empty. */
  part: string
  /** JSON of a subscription or an event; of a lead, the `id` of its event. Null: only that it was read is known. */
  record: string | null
  /** When the reading of a subscription began, and the newest stored event at that time. */
  read_at: number | null
  newest_seq: number | null
}

/** Links for one customer each: tokens to link an account, and invites to a group. */
export interface JoinLinksTable {
  sha256: string
  kind: 'token' | 'invite'
  environment: Environment
  customer_id: string
  expires_at: number
  /** The first account that used it. */
  used_by: string | null
}

/** A customer of one environment. */
export interface PersonKey {
  readonly environment: Environment
  readonly customerId: string
}

/** One text for one event of one environment; environments contain no space, so no two events share it. */
export function eventKey(environment: Environment, eventId: string): string {
  return `${environment} ${eventId}`
}

/** A page of a list ordered by id: at most `limit` ids, all after `after` (empty: from the first). */
export interface IdPage {
  readonly after: string
  readonly limit: number
}

export const EVERY_ID: IdPage = { after: '', limit: Number.MAX_SAFE_INTEGER }

/** In the sort order of keys. */
export const ENVIRONMENTS: readonly Environment[] = ['live', 'sandbox']
