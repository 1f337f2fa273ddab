import { ActionRequiredError, RetryableError } from '../../src/sync/platform.js'
import type { WriteSync } from '../../src/sync/writes.js'
import { type CallName, createCommunity, type Fate } from './community.js'
import { type Access, GOLD, HOUR, SILVER, syncing } from './syncing.js'

export const CUSTOMERS = ['cus_1', 'cus_2'] as const
export const ACCOUNTS = ['a', 'b'] as const
export const TARGETS = { pro_gold: GOLD, pro_platinum: GOLD, pro_silver: SILVER } as const
export type ProductId = keyof typeof TARGETS

/**
 * What becomes of one call: a platform may limit, refuse, not find the account, or be cut off before or after it has done
 * what was asked.
 */
export const FATES = ['made', 'lost', 'made, but unheard of', 'limited', 'refused', 'not found'] as const
export type FateName = (typeof FATES)[number]

export interface AccessAct extends Access {
  readonly act: 'access'
  readonly productId: ProductId
}

/** Lets sync run, each call meeting one of these fates, until it is killed at one of its writes, if at all. */
export interface RunAct {
  readonly act: 'run'
  readonly fates: readonly FateName[]
  readonly killedAt: number | null
  readonly sweep: boolean
  /** What changes, and is taken in, while a call of the run is under way. */
  readonly during: AccessAct | null
}

export type Act =
  | AccessAct
  | RunAct
  | { readonly act: 'link'; readonly customerId: string; readonly accountId: string | null }
  | {
      readonly act: 'staff'
      readonly accountId: string
      readonly productId: ProductId
      readonly gives: boolean
    }
  | { readonly act: 'pass'; readonly ms: number }

/** A store and a community that outlive every process, in which each customer has an account and access. */
export async function beginStory() {
  const community = createCommunity({ clock: () => world.clock() })
  const world = await syncing({ community })
  await world.sync.stop()
  const active = new Map<string, Set<ProductId>>(CUSTOMERS.map((id) => [id, new Set()]))
  const linked = new Map<string, string | null>()
  const staffGave = new Set<string>()

  async function changeAccess(change: AccessAct): Promise<void> {
    if (change.active) active.get(change.customerId)?.add(change.productId)
    else active.get(change.customerId)?.delete(change.productId)
    await world.access(change)
  }

  function actOfStaff(accountId: string, productId: ProductId, gives: boolean): void {
    const target = TARGETS[productId]
    if (gives) {
      community.staffGives(target, accountId)
      staffGave.add(`${target.roleId} ${accountId}`)
    } else community.staffTakes(target, accountId)
  }

  /** A process that works off what is due, and dies at one of its writes: before it is committed, or right after. */
  async function run({ fates, killedAt, sweep, during }: RunAct): Promise<void> {
    let calls = 0
    let writes = 0
    let isDead = false
    let die = (): void => {}
    const death = new Promise<void>((resolve) => {
      die = () => {
        isDead = true
        resolve()
      }
    })
    /** Nothing happens any more in a process that was killed. */
    const never = new Promise<never>(() => {})
    const committing = async <Answer>(write: () => Promise<Answer>): Promise<Answer> => {
      writes += 1
      if (!isDead && killedAt === writes * 2) die()
      if (isDead) return never
      const answer = await write()
      if (!isDead && killedAt === writes * 2 + 1) die()
      if (isDead) return never
      return answer
    }
    const mortal: WriteSync = (name, change) => committing(() => world.writeSync(name, change))
    community.meet(async ({ call }) => {
      if (isDead) return never
      const fate = fates[calls % Math.max(1, fates.length)] ?? 'made'
      calls += 1
      if (during !== null && calls === 1) {
        await changeAccess(during)
        // Whoever asks to become a member has everything taken in first.
        await Promise.race([sync.accountAsked(GOLD, 'nobody'), death])
      }
      return isDead ? never : fateOf(fate, call, world.clock())
    })
    const sync = await world.start({ writeSync: mortal })
    await Promise.race([sync.run({ sweep }), death])
    if (!isDead) await sync.stop()
    die()
  }

  async function perform(act: Act): Promise<void> {
    switch (act.act) {
      case 'access':
        return changeAccess(act)
      case 'link':
        linked.set(act.customerId, act.accountId)
        return world.link(act.customerId, act.accountId)
      case 'staff':
        return actOfStaff(act.accountId, act.productId, act.gives)
      case 'run':
        return run(act)
      case 'pass':
        return world.pass(act.ms)
      default:
        return act satisfies never
    }
  }

  for (const [i, customerId] of CUSTOMERS.entries()) {
    await perform({ act: 'link', customerId, accountId: ACCOUNTS[i] ?? null })
    await perform({ act: 'access', customerId, productId: 'pro_gold', active: true })
  }

  return {
    perform,
    /** Everything works again, for as long as what was limited or has failed waits. */
    async end(): Promise<void> {
      community.meet(() => null)
      const sync = await world.start({ removals: () => ({ atMost: 1_000, percent: 100 }) })
      for (const sweep of [false, true, false]) {
        await perform({ act: 'pass', ms: HOUR })
        await sync.run({ sweep, retry: {} })
      }
      await sync.stop()
    },
    /** Those with an account of somebody who has access. */
    entitled: (target: typeof GOLD): readonly string[] =>
      ACCOUNTS.filter((accountId) =>
        CUSTOMERS.some(
          (customerId) =>
            linked.get(customerId) === accountId &&
            [...(active.get(customerId) ?? [])].some((productId) => TARGETS[productId] === target),
        ),
      ),
    members: (target: typeof GOLD): readonly string[] => community.membersOf(target),
    wasGivenByStaff: (target: typeof GOLD, accountId: string): boolean =>
      staffGave.has(`${target.roleId} ${accountId}`),
  }
}

function fateOf(name: FateName, call: CallName, now: number): Fate {
  switch (name) {
    case 'made':
      return null
    case 'lost':
      return { error: new RetryableError('unreachable', 'No answer.'), isMade: false }
    case 'made, but unheard of':
      return { error: new RetryableError('unreachable', 'No answer.'), isMade: true }
    case 'limited':
      return {
        error: new RetryableError('rate_limited', 'Too fast.', {
          scope: 'platform',
          notBefore: now + 500,
          isRefused: true,
        }),
        isMade: false,
      }
    case 'not found':
      return call === 'take' ? 'gone' : fateOf('refused', call, now)
    case 'refused':
      return {
        error: new ActionRequiredError('missing', 'Not in the guild.', { mayHeal: true }),
        isMade: false,
      }
    default:
      return name satisfies never
  }
}
