/* What the store alone answers about roles and groups, and why one customer has those of one product, or not. */

import { time } from '../entitlements/reasons.js'
import { PLATFORMS } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { compareText } from '../provider/order.js'
import { type Membership, membershipKey } from '../store/memberships.js'
import type { Db, PersonKey } from '../store/schema.js'
import { isSyncPaused } from '../store/sync-state.js'
import { isHeld } from './bound.js'
import { accountOf, loadActiveProducts, loadDesireInputs, planDesires, productsOfTargets } from './desired.js'
import type { CallState } from './limits.js'
import { neverDesired, transition } from './membership.js'
import {
  type MembershipQuery,
  type MembershipView,
  readMemberships,
  readPlan,
  type SyncQuestion,
  viewMembership,
} from './plan.js'
import { type AdapterName, parseTargetKey } from './target.js'

/** For both environments if none is named. */
export function createQuestions(
  db: Db,
  question: (environments?: readonly Environment[]) => Promise<SyncQuestion>,
) {
  return {
    /** The names of all roles and groups, including those removed from the config: memberships in them must still end. */
    targets: async (environments?: readonly Environment[]) =>
      (await question(environments)).targets.map(({ target }) => target),
    memberships: async (query: MembershipQuery) => readMemberships(db, await question(), query),
    /** The calls that would be made now. */
    plan: async (environments?: readonly Environment[]) => readPlan(db, await question(environments)),
    explain: async (asked: ProductOfPerson) => explainMemberships(db, await question(), asked),
  }
}

export interface ProductOfPerson extends PersonKey {
  readonly productId: string
}

/** What happens to a membership next. `action`: null: nothing. `at`: not before this, in epoch milliseconds. */
export interface NextStep {
  readonly action: 'give' | 'take' | null
  readonly waitsFor: 'customer' | 'operator' | 'platform' | null
  readonly at: number | null
}

const NOTHING: NextStep = { action: null, waitsFor: null, at: null }

/**
 * The roles and groups that a product gives, and those that it gave before, by target and account. Each is as sync will
 * store it once it has seen the newest access, links and config.
 */
async function explainMemberships(
  db: Db,
  { products, bound, stateOf, now }: SyncQuestion,
  { environment, customerId, productId }: ProductOfPerson,
) {
  const opens = productsOfTargets(products, environment)
  const configured = [...opens].flatMap(([target, productIds]) => (productIds.has(productId) ? target : []))
  const inputs = await loadDesireInputs(db, environment, [customerId])
  const active = (await loadActiveProducts(db, environment, [customerId])).get(customerId) ?? []
  const giversOf = (target: string) => active.filter((id) => opens.get(target)?.has(id))
  const links = inputs.links.filter((link) => link.customerId === customerId)
  const linkedFor = (target: string) =>
    links.filter(({ fact, accountId }) => accountOf({ environment, target, accountId })?.fact === fact)
  const isTheirs = ({ customerId: holder, target, accountId }: Membership) =>
    holder === customerId || linkedFor(target).some((link) => link.accountId === accountId)

  const never = configured.flatMap((target) =>
    linkedFor(target).map(({ accountId }) =>
      neverDesired({ environment, target, accountId }, { customerId }, now),
    ),
  )
  const stored = inputs.stored.filter(
    (one) =>
      isTheirs(one) &&
      (configured.includes(one.target) || one.reason?.productIds.includes(productId) === true),
  )
  const news = new Map(planDesires(inputs, opens).map((desire) => [membershipKey(desire), desire]))
  const circumstances = { isPaused: await isSyncPaused(db), now }
  const linked = []
  for (const one of new Map([...never, ...stored].map((one) => [membershipKey(one), one])).values()) {
    const platform = platformOf(one.target)
    if (platform === null) continue
    const desire = news.get(membershipKey(one))
    const membership = (desire && transition(one, { kind: 'desired', ...desire, reason: null }, now)) ?? one
    const wasEverDesired = membership.desired || stored.includes(one)
    const limit = strictest(stateOf(platform), stateOf(one.target))
    const isOverBound = await isHeld(db, one, bound, now)
    const said = linkedIn(platform, membership, giversOf(one.target), {
      ...circumstances,
      limit,
      isOverBound,
    })
    linked.push({ ...said, desiredSince: wasEverDesired ? membership.desiredSince : null })
  }
  const unlinked = configured.flatMap((target) => {
    const platform = platformOf(target)
    const isUnlinked = platform !== null && linkedFor(target).length === 0
    return isUnlinked ? [unlinkedIn(target, platform, customerId, giversOf(target).length > 0)] : []
  })
  return [...linked, ...unlinked].sort(
    (a, b) => compareText(a.target, b.target) || compareText(a.accountId ?? '', b.accountId ?? ''),
  )
}

/** What decides, besides the membership itself, whether a call may be made. */
interface Circumstances {
  readonly isPaused: boolean
  readonly limit: CallState
  readonly isOverBound: boolean
  readonly now: number
}

/** @param givers the customer's active products that give it; if it is desired without any, another customer's do */
function linkedIn(
  platform: AdapterName,
  membership: Membership,
  givers: readonly string[],
  circumstances: Circumstances,
) {
  const view = viewMembership(membership, circumstances.isOverBound)
  const { target, accountId, state, desired, applied, appliedAt, lastError } = view
  const next = nextStep(view, circumstances)
  const { has, get, lose } = WORDS[platform]
  const because = `because of ${givers.join(' and ') || 'another customer with this account'}`
  const settled = desired ? `${has}, ${because}` : endText(platform, membership)
  const open = `${desired ? `should ${get}, ${because}` : `should ${lose}`}. ${waitText(view, next, circumstances)}`
  const sentence = `${PLATFORMS[platform].title} account ${accountId} ${next.action === null ? `${settled}.` : open}`
  return { target, platform, accountId, state, desired, applied, appliedAt, lastError, next, sentence }
}

function unlinkedIn(target: string, platform: AdapterName, customerId: string, desired: boolean) {
  const { get, gives } = WORDS[platform]
  const noAccount = `No ${PLATFORMS[platform].title} account is linked to ${customerId}`
  return {
    ...{ target, platform, desired, accountId: null, state: 'unlinked' as const },
    ...{ desiredSince: null, applied: 'unknown' as const, appliedAt: null, lastError: null },
    next: desired ? ({ action: 'give', waitsFor: 'customer', at: null } as const) : NOTHING,
    sentence: desired
      ? `${noAccount}: link one, and it will ${get}.`
      : `${noAccount}, and none of their access ${gives}.`,
  }
}

function platformOf(target: string): AdapterName | null {
  return parseTargetKey(target, 'live')?.adapter ?? null
}

/** Of the limits of a platform and of a target: the one that ends last, or never by itself. */
function strictest(a: CallState, b: CallState): CallState {
  if (a.state === 'stopped') return a
  return b.state === 'stopped' || (b.until ?? 0) > (a.until ?? 0) ? b : a
}

function nextStep(view: MembershipView, { isPaused, limit, now }: Circumstances): NextStep {
  const action = view.desired ? 'give' : 'take'
  switch (view.state) {
    case 'settled':
      return NOTHING
    case 'waiting':
      return { action, waitsFor: 'customer', at: null }
    case 'parked':
    case 'unconfirmed':
      return { action, waitsFor: 'operator', at: null }
    case 'due':
    case 'retrying': {
      if (isPaused || limit.state === 'stopped') return { action, waitsFor: 'operator', at: null }
      const at = Math.max(view.nextAttemptAt ?? 0, limit.until ?? 0)
      return at > now ? { action, waitsFor: 'platform', at } : { action, waitsFor: null, at: null }
    }
    default:
      return view.state satisfies never
  }
}

const WORDS = {
  discord: {
    has: 'has the role',
    get: 'get the role',
    lose: 'lose the role',
    lost: 'lost the role',
    gives: 'gives the role',
  },
  telegram: {
    has: 'is in the group',
    get: 'be let into the group',
    lose: 'be removed from the group',
    lost: 'was removed from the group',
    gives: 'opens the group',
  },
} as const satisfies Readonly<Record<AdapterName, object>>

function endText(platform: AdapterName, { state, applied, appliedAt, given }: Membership): string {
  const { has, lose, lost, gives } = WORDS[platform]
  if (state === 'gone') return `could not be found when it should ${lose}`
  if (applied === 'member') return `${has}, but not by Latchkey, which leaves it alone`
  if (given && appliedAt !== null) return `${lost} at ${time(appliedAt)}`
  return `has no access that ${gives}`
}

/** What a call waits for, or that it is due. */
function waitText(
  { state, lastError }: MembershipView,
  { at }: NextStep,
  { isPaused, limit }: Circumstances,
) {
  if (state === 'waiting' || state === 'parked') return lastError?.message
  if (state === 'unconfirmed')
    return 'Too many removals are due at once, so an operator must confirm them: see `latchkey sync plan`.'
  if (isPaused) return 'Sync is paused: an operator must run `latchkey sync resume`.'
  if (limit.state === 'stopped') return limit.reason?.message
  if (at === null) return 'The call is due now.'
  const failed = lastError === null ? limit.reason?.message : `The last call failed: ${lastError.message}`
  return `${failed ?? ''} The next call is at ${time(at)}.`.trimStart()
}
