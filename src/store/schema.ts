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
  next_sources: NextSourcesTable
  next_dispositions: NextDispositionsTable
  rebuild_marks: RebuildMarksTable
  memberships: MembershipsTable
  sync_marks: SyncMarksTable
}

/** What became of a stored event; a duplicate is not stored again. */
export type StoredDisposition = 'applied' | 'ignored' | 'held' | 'quarantined'

/** Every signed event, once per (environment, event_id); `seq` is the order of arrival. */
export interface EventsTable {
  seq: Generated<number>
  environment: Environment
  /** The `evt_` id, or `sha256:<hex>` of the body where it has no usable id. */
  event_id: string
  endpoint: string
  received_at: number
  headers: string
  body: Buffer
  body_sha256: string
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
export interface EventConflictsTable {
  environment: Environment
  event_id: string
  body_sha256: string
  body: Buffer
  endpoint: string
  headers: string
  received_at: number
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
  environment: Environment
  kind: SourceKind
  source_id: string
  customer_id: string | null
  state: string
  /** What taking in a newer event needs beside the state; null: nothing was worth remembering. */
  memory: string | null
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

export interface SettingsTable {
  key: string
  value: string
}

/** Sources that a rebuild folded otherwise than they stand. */
export interface NextSourcesTable {
  environment: Environment
  kind: SourceKind
  source_id: string
  customer_id: string | null
  /** Null: there is no such source any more. */
  state: string | null
  memory: string | null
  newest_at: number
}

/** Dispositions that a rebuild found to be others than the stored ones, beside the source they come from. */
export interface NextDispositionsTable {
  environment: Environment
  event_id: string
  kind: SourceKind
  source_id: string
  disposition: StoredDisposition
  reason: HoldReason | null
}

/** Sources written while a rebuild is under way: to be folded again before the swap. */
export interface RebuildMarksTable {
  environment: Environment
  kind: SourceKind
  source_id: string
}

/** Whether one platform account should be, and is, a member of one role or group. */
export interface MembershipsTable {
  environment: Environment
  /** `discord:<guild>:<role>` or `telegram:<group>`. */
  target: string
  account_id: string
  /** Of the customers with this account, the one whom it was last looked at for. */
  customer_id: string
  desired: number
  desired_since: number
  /** What the platform was last known to say; `unknown` too while a call is under way. */
  applied: 'unknown' | 'member' | 'absent'
  applied_at: number | null
  /** 1: Latchkey gave it, or was about to; only then is it ever taken back. */
  given: number
  /** 1: an operator agreed to this removal, beyond the bound. */
  confirmed: Generated<number>
  attempts: Generated<number>
  /** Null: there is nothing to do, or it is parked. */
  next_attempt_at: number | null
  /** Why it waits for somebody; null: it does not. */
  parked: string | null
  last_error: string | null
}

/** Customers whose memberships are to be looked at again, for another reason than a change of access. */
export interface SyncMarksTable {
  environment: Environment
  customer_id: string
}
