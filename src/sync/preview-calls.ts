import type { Environment } from '../provider/event.js'
import type { ProjectedCustomer } from '../recompute/run.js'
import { loadMemberships, membershipKey } from '../store/memberships.js'
import { type Db, ENVIRONMENTS } from '../store/schema.js'
import { linkedAccounts, loadDesireInputs, planDesires, productsOfTargets } from './desired.js'
import { type Desire, neverDesired, transition } from './membership.js'
import type { PlannedCall } from './plan.js'
import type { SyncedProduct } from './target.js'

type FollowingCall = Omit<PlannedCall, 'needsConfirmation'>

/** How many calls would follow, with examples. */
export interface CallPreview {
  readonly gives: number
  readonly takes: number
  readonly sample: readonly FollowingCall[]
}

/** Maximum number of examples; all calls are counted. */
const SAMPLE_SIZE = 20

/** Customers read at once: bounds memory, and how long other requests wait. */
const CHUNK = 250

/** The additional calls that would follow if the customers' access were as given. */
export async function previewCalls(
  db: Db,
  products: readonly SyncedProduct[],
  customers: readonly ProjectedCustomer[],
): Promise<CallPreview> {
  const calls = new Map<string, FollowingCall>()
  if (products.some(({ targets }) => targets.length > 0)) {
    for (const environment of ENVIRONMENTS) {
      const own = customers.filter((one) => one.environment === environment)
      for (let i = 0; i < own.length; i += CHUNK) {
        const desires = await newDesires(db, environment, own.slice(i, i + CHUNK), products)
        for (const call of await callsFor(db, desires)) calls.set(membershipKey(call), call)
      }
    }
  }
  const gives = [...calls.values()].filter(({ action }) => action === 'give').length
  return { gives, takes: calls.size - gives, sample: [...calls.values()].slice(0, SAMPLE_SIZE) }
}

async function newDesires(
  db: Db,
  environment: Environment,
  customers: readonly ProjectedCustomer[],
  products: readonly SyncedProduct[],
): Promise<readonly Desire[]> {
  const targets = productsOfTargets(products, environment)
  const ids = customers.map(({ customerId }) => customerId)
  const accounts = customers.flatMap(({ customerId, accounts }) => linkedAccounts(customerId, accounts ?? {}))
  const is = await loadDesireInputs(db, environment, ids, accounts)
  const relinked = new Set(
    customers.filter((one) => one.accounts !== null).map(({ customerId }) => customerId),
  )
  const links = [...is.links.filter(({ customerId }) => !relinked.has(customerId)), ...accounts]
  const active = customers.flatMap(({ customerId, activeProducts }) =>
    activeProducts === null ? [] : [[customerId, activeProducts] as const],
  )
  const would = { ...is, links, activeProducts: new Map([...is.activeProducts, ...active]) }
  const known = new Set(planDesires(is, targets).map(textOf))
  return planDesires(would, targets).filter((desire) => !known.has(textOf(desire)))
}

const textOf = (desire: Desire): string => `${membershipKey(desire)} ${desire.desired}`

async function callsFor(db: Db, desires: readonly Desire[]): Promise<readonly FollowingCall[]> {
  const memberships = await loadMemberships(db, desires)
  return desires.flatMap((desire) => {
    const { environment, target, accountId, customerId, desired } = desire
    const membership = memberships.get(membershipKey(desire)) ?? neverDesired(desire, desire, 0)
    const after = transition(membership, { kind: 'desired', desired, customerId, reason: null }, 0)
    if (after?.state !== 'due' && after?.state !== 'retrying') return []
    return [{ environment, target, accountId, customerId, action: desired ? 'give' : 'take' }]
  })
}
