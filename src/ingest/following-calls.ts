import type { Environment } from '../provider/event.js'

/** A call to a platform: somebody is made a member of a role or group, or is no member any more. */
export interface FollowingCall {
  readonly environment: Environment
  /** `discord:<guild>:<role>` or `telegram:<group>`. */
  readonly target: string
  readonly accountId: string
  readonly customerId: string
  readonly action: 'give' | 'take'
}

/** How many calls would follow, and some of them. */
export interface FollowingCalls {
  readonly gives: number
  readonly takes: number
  readonly sample: readonly FollowingCall[]
}

/** The calls that are to be made now, and were not before. */
export function callsThatFollow(
  before: readonly FollowingCall[],
  after: readonly FollowingCall[],
  sampleSize: number,
): FollowingCalls {
  const known = new Set(before.map(keyOf))
  const added = after.filter((call) => !known.has(keyOf(call)))
  const gives = added.filter(({ action }) => action === 'give').length
  return {
    gives,
    takes: added.length - gives,
    sample: added.slice(0, sampleSize).map(({ environment, target, accountId, customerId, action }) => ({
      environment,
      target,
      accountId,
      customerId,
      action,
    })),
  }
}

function keyOf({ environment, target, accountId, action }: FollowingCall): string {
  return JSON.stringify([environment, target, accountId, action])
}
