import type { AccessAnswer } from '../../entitlements/model.js'
import type { PersonKey } from '../../store/schema.js'
import type { Tools } from '../context.js'
import type { SyncedProduct, TelegramTarget } from '../target.js'
import type { Call } from './calls.js'
import type { Groups } from './groups.js'

/** Shared by the parts of the messenger. */
export interface TelegramContext extends Tools {
  readonly call: Call
  readonly groups: Groups
  /** Called each time, since a reload may change them. */
  readonly products: () => readonly SyncedProduct[]
  readonly readAccess: (question: PersonKey & { readonly at: null }) => Promise<AccessAnswer>
  /** Links a messenger account to a customer, once per key. */
  readonly linkAccount: (
    link: PersonKey & { readonly accountId: string; readonly key: string; readonly reason: string },
  ) => Promise<unknown>
  /** Whether this is the instance that receives updates. */
  readonly isLeader: () => boolean
  readonly accountAsked: (target: TelegramTarget, accountId: string) => Promise<'approve' | 'decline'>
  /** Called when something that a check would find may have changed. */
  readonly recheck: () => void
}
