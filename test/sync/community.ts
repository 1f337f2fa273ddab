import type { ActionRequiredError, Platform, RetryableError } from '../../src/sync/platform.js'
import { type AdapterName, type Target, targetKey } from '../../src/sync/target.js'

export type CallName = 'observe' | 'give' | 'take' | 'list'

export interface MadeCall {
  readonly call: CallName
  /** `targetKey` */
  readonly target: string
  /** Empty where it concerns all. */
  readonly accountId: string
  readonly at: number
}

/**
 * What happens to a call: null, it is made and answered; an error, and whether it was made all the same; `gone`, a take
 * finds nobody.
 */
export type Fate =
  | { readonly error: RetryableError | ActionRequiredError; readonly isMade: boolean }
  | 'gone'
  | null

export interface Community extends Platform {
  /** Every call that arrived, refused or not. */
  readonly calls: readonly MadeCall[]
  /** Decides what becomes of each call from now on. */
  meet(fateOf: (call: MadeCall) => Fate | Promise<Fate>): void
  /** What staff does on the platform itself. */
  staffGives(target: Target, accountId: string): void
  staffTakes(target: Target, accountId: string): void
  membersOf(target: Target): readonly string[]
  /** How many calls were under way at the same time, at most. */
  readonly mostAtOnce: () => number
}

export interface CommunityOptions {
  readonly name?: AdapterName
  readonly concurrency?: number
  /** Whether it tells who its members are. */
  readonly lists?: boolean
  readonly clock: () => number
}

/** A platform that keeps its members in memory, and outlives whoever calls it. */
export function createCommunity({
  name = 'discord',
  concurrency = 4,
  lists = true,
  clock,
}: CommunityOptions): Community {
  const members = new Map<string, Set<string>>()
  const calls: MadeCall[] = []
  let fateOf: (call: MadeCall) => Fate | Promise<Fate> = () => null
  let atOnce = 0
  let mostAtOnce = 0

  const membersIn = (target: Target): Set<string> => {
    const found = members.get(targetKey(target)) ?? new Set()
    members.set(targetKey(target), found)
    return found
  }
  async function make<Answer>(
    call: CallName,
    target: Target,
    accountId: string,
    act: () => Answer,
  ): Promise<Answer> {
    // A call that a process made before it died is none of the next one's.
    const decide = fateOf
    const made: MadeCall = { call, target: targetKey(target), accountId, at: clock() }
    calls.push(made)
    atOnce += 1
    mostAtOnce = Math.max(mostAtOnce, atOnce)
    try {
      // As over a network, the answer comes in a later turn.
      await new Promise(setImmediate)
      const fate = await decide(made)
      if (fate === 'gone') return fate as Answer
      const answer = fate === null || fate.isMade ? act() : null
      if (fate !== null) throw fate.error
      return answer as Answer
    } finally {
      atOnce -= 1
    }
  }

  return {
    name,
    concurrency,
    calls,
    observe: (target, accountId) =>
      make('observe', target, accountId, () => (membersIn(target).has(accountId) ? 'member' : 'absent')),
    give: (target, accountId) => make('give', target, accountId, () => void membersIn(target).add(accountId)),
    take: (target, accountId) =>
      make('take', target, accountId, (): 'gone' | undefined => void membersIn(target).delete(accountId)),
    ...(lists && {
      async *listMembers(target: Target) {
        yield* await make('list', target, '', () => [...membersIn(target)])
      },
    }),
    check: (targets) =>
      Promise.resolve(
        targets.map((target) => ({ about: targetKey(target), isFine: true, message: 'It is there.' })),
      ),
    meet: (next) => {
      fateOf = next
    },
    staffGives: (target, accountId) => void membersIn(target).add(accountId),
    staffTakes: (target, accountId) => void membersIn(target).delete(accountId),
    membersOf: (target) => [...membersIn(target)].sort(),
    mostAtOnce: () => mostAtOnce,
  }
}
