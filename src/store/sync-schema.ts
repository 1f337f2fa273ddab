import type { Generated } from 'kysely'
import type { Environment } from '../provider/event.js'

/* The tables of what follows access: memberships, links to join by, and messages to the merchant's own address. */

/** Whether one platform account should be, and is, a member of one role or group. */
export interface MembershipsTable {
  environment: Environment
  /** `discord:<guild>:<role>` or `telegram:<group>`. */
  target: string
  account_id: string
  /** Of the customers with this account, the one whom it was last looked at for. */
  customer_id: string
  /**
   * `due`: a call is to be made. `retrying`: the same, after a failure. `recheck`: a member that is asked about again.
   * `waiting`: for the customer, such as to join. `parked`: for an operator. `gone`: it was not there when it should
   * have been removed. `settled`: there is nothing to do.
   */
  state: 'settled' | 'due' | 'retrying' | 'recheck' | 'waiting' | 'parked' | 'gone'
  desired: number
  desired_since: number
  /** JSON: why it is desired, or no more. */
  reason: string | null
  /** What the platform was last known to say; `unknown` too while a call is under way, and of what is `gone`. */
  applied: 'unknown' | 'member' | 'absent'
  /** Null while that is unknown, unless it asked to become a member and was let in. */
  applied_at: number | null
  /** 1: Latchkey gave it, or was about to; only then is it ever removed. */
  given: number
  /** 1: an operator agreed to this removal, beyond the bound. */
  confirmed: Generated<number>
  attempts: Generated<number>
  /** Null unless it is `due`, `retrying` or to `recheck`. */
  next_attempt_at: number | null
  /** 1: what it is parked for may come by itself, so that sweeps try again. */
  may_heal: Generated<number>
  /** Of the newest failure; null, both, since it last succeeded. */
  error_code: string | null
  error: string | null
}

/** Customers whose memberships are to be looked at again, for another reason than a change of access. */
export interface SyncMarksTable {
  environment: Environment
  customer_id: string
  /** How often it was marked since it was last looked at. */
  version: Generated<number>
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
  kind: 'token' | 'invite'
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
