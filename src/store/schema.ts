import type { Generated } from 'kysely'
import type { EntitlementStatus, HoldReason, SourceKind } from '../entitlements/model.js'
import type { BodyRemovalReason } from '../entitlements/stored-event.js'
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
  erasures: ErasuresTable
  waiting_bodies: WaitingBodiesTable
  memberships: MembershipsTable
  sync_marks: SyncMarksTable
  link_tokens: JoinLinksTable
  invites: JoinLinksTable
  moved_groups: MovedGroupsTable
  owed_unbans: OwedUnbansTable
  messages: MessagesTable
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
  /** As it came, unless `body_removed` says otherwise; null: it is there no more. */
  body: Buffer | null
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
  /** Why the body is not as it came, with since when and how long it was; null, all three: it is. */
  body_removed: BodyRemovalReason | null
  body_removed_at: number | null
  body_bytes: number | null
}

/** Other bodies that came under the id of a stored event. */
export interface EventConflictsTable {
  environment: Environment
  event_id: string
  body_sha256: string
  body: Buffer | null
  endpoint: string
  headers: string
  received_at: number
  deliveries: number
  body_removed: BodyRemovalReason | null
  body_removed_at: number | null
  body_bytes: number | null
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
  /** What the platform was last known to say; `unknown` too while a call is under way, and of who was gone at a removal. */
  applied: 'unknown' | 'member' | 'absent'
  /** Null while that is unknown, unless it asked to become a member and was let in. */
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
  /** 1: what it waits for may come by itself, so that sweeps try again. */
  may_heal: Generated<number>
  last_error: string | null
}

/** Customers whose memberships are to be looked at again, for another reason than a change of access. */
export interface SyncMarksTable {
  environment: Environment
  customer_id: string
  /** How often it was marked since it was last looked at. */
  version: Generated<number>
}

/** Everybody who was erased. `seq`s say how far the stored events have been looked through for them. */
export interface ErasuresTable {
  environment: Environment
  customer_id: string
  event_id: string
  erased_at: number
  /** What else tells of them (JSON): needed while events are looked through, and gone with the end of that. */
  known_by: string | null
  /** The same in a form that tells nothing (JSON): by these, what comes later is known. */
  fingerprints: string | null
  swept_to: number
  /** What arrives after this is withheld as it comes. */
  sweep_end: number
  /** When nothing of them was left, in the write-ahead log either. */
  finished_at: number | null
}

/** Events whose bodies would have been removed for their age, had they not been waiting for something. */
export interface WaitingBodiesTable {
  seq: number
}

/** Changes of access that the merchant's own address has not taken yet. */
export interface MessagesTable {
  /** The change that it tells. */
  cursor: number
  /** Of the change log when it was queued: a restored store gives cursors again. */
  epoch: string
  environment: Environment
  customer_id: string
  queued_at: number
  first_attempt_at: number | null
  attempts: Generated<number>
  /** Null: it waits for an earlier one of its customer, or is parked. */
  next_attempt_at: number | null
  /** Why it is not sent any more; null: it is. */
  parked: 'gone' | 'given_up' | null
  last_error: string | null
}

/** Links that were made for one customer each: tokens to link an account with, and invites to a group. */
export interface JoinLinksTable {
  /** Of the token's or the link's text, in hex. */
  sha256: string
  environment: Environment
  customer_id: string
  expires_at: number
  /** The account that used it first; null: none has. */
  used_by: string | null
}

/** Where groups went that got another id, by the id that the config has. */
export interface MovedGroupsTable {
  group_id: string
  moved_to: string
}

/** Bans of Latchkey's own that may stand: a removal was begun that did not get to lift its ban. */
export interface OwedUnbansTable {
  group_id: string
  account_id: string
}
