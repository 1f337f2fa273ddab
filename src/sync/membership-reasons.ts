import type { Change } from '../store/changes.js'
import { type MembershipKey, membershipKey } from '../store/membership.js'

/**
 * Why a membership is given or taken: what changed access, as the change log has it; or an account was linked
 * (`link`), products and targets were mapped in another way (`config`), a restore had everybody looked at (`restore`),
 * or a sweep found it missing (`sweep`).
 */
export interface MembershipReason {
  readonly productIds: readonly string[]
  /** `eventId`: null where no event caused it, or it is not known. */
  readonly cause: {
    readonly kind: Change['cause']['kind'] | MarkKind | 'sweep'
    readonly eventId: string | null
  }
}

/** Why a customer is looked at whose access has not changed. */
export type MarkKind = 'link' | 'config' | 'restore'

/** Bounds memory in a long outage: for what is older, the change log is asked. */
const MOST = 20_000

/** Remembers why memberships were last desired, or not, until that is done. */
export interface MembershipReasons {
  set(key: MembershipKey, desired: boolean, reason: MembershipReason): void
  /** Null: not known, since it was worked out before the start, or long ago. */
  take(key: MembershipKey, desired: boolean): MembershipReason | null
}

export function createMembershipReasons(): MembershipReasons {
  const reasons = new Map<string, { readonly desired: boolean; readonly reason: MembershipReason }>()
  return {
    set(key, desired, reason) {
      const name = membershipKey(key)
      // At the end, so that the oldest goes first.
      reasons.delete(name)
      reasons.set(name, { desired, reason })
      const [oldest] = reasons.keys()
      if (reasons.size > MOST && oldest !== undefined) reasons.delete(oldest)
    },
    take(key, desired) {
      const name = membershipKey(key)
      const known = reasons.get(name)
      if (known?.desired !== desired) return null
      reasons.delete(name)
      return known.reason
    },
  }
}
