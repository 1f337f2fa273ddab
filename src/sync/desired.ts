import type { Environment } from '../provider/event.js'
import type { Desire, MembershipKey } from '../store/membership.js'
import type { AccountFact, LinkedAccount } from '../store/sync-state.js'
import type { SyncedProduct } from './sync.js'
import { ACCOUNT_FACT, type AdapterName, parseTargetKey, type Target, targetKey } from './target.js'

/** A platform account. */
export type Account = Pick<LinkedAccount, 'fact' | 'accountId'>

/** All that decides about some accounts, in one environment. */
export interface Grounds {
  readonly environment: Environment
  /** The accounts: of these, everything else here tells all. */
  readonly accounts: readonly Account[]
  readonly links: readonly LinkedAccount[]
  /** By customer, the products that they have access to. */
  readonly activeProducts: ReadonlyMap<string, readonly string[]>
  readonly stored: readonly Desire[]
}

/** By `targetKey`, the products that give membership in it; of one environment. */
export type ProductsOfTarget = ReadonlyMap<string, ReadonlySet<string>>

export function productsOfTargets(
  products: readonly SyncedProduct[],
  environment: Environment,
): ProductsOfTarget {
  const found = new Map<string, Set<string>>()
  for (const { id, targets } of products) {
    for (const target of targets.filter((one) => one.environment === environment)) {
      const key = targetKey(target)
      found.set(key, (found.get(key) ?? new Set()).add(id))
    }
  }
  return found
}

/**
 * What is desired of these accounts now, where that is not what is stored: membership in each target that any customer
 * with the account has access to by any product. One that was never desired, and is not now, is not told of.
 */
export function planDesires(grounds: Grounds, products: ProductsOfTarget): readonly Desire[] {
  const { environment, accounts } = grounds
  return accounts.flatMap(({ fact, accountId }) => {
    const customers = grounds.links
      .filter((link) => link.fact === fact && link.accountId === accountId)
      .map(({ customerId }) => customerId)
      .sort()
    const stored = new Map(
      grounds.stored
        .filter((one) => one.accountId === accountId && factOf(one.target, environment) === fact)
        .map((one) => [one.target, one]),
    )
    const configured = [...products.keys()].filter((target) => factOf(target, environment) === fact)
    return [...new Set([...configured, ...stored.keys()])].flatMap((target) => {
      const known = stored.get(target)
      const wanting = customers.filter((customer) =>
        grounds.activeProducts.get(customer)?.some((product) => products.get(target)?.has(product)),
      )
      const desired = wanting.length > 0
      const customerId = nearest(desired ? wanting : customers, known?.customerId)
      if (customerId === undefined) return []
      if (known === undefined ? !desired : known.desired === desired && known.customerId === customerId) {
        return []
      }
      return [{ environment, target, accountId, customerId, desired }]
    })
  })
}

/** The one it is known for already if it may be, so that nothing is written for nothing. */
function nearest(customers: readonly string[], known: string | undefined): string | undefined {
  const [first = known] = customers
  return known !== undefined && customers.includes(known) ? known : first
}

/** The fact that names the account which a target's memberships hang on. */
function factOf(target: string, environment: Environment): AccountFact | null {
  const adapter: AdapterName | undefined = parseTargetKey(target, environment)?.adapter
  return adapter === undefined ? null : ACCOUNT_FACT[adapter]
}

/** The account of a membership; null: of a target that no adapter has. */
export function accountOf({ environment, target, accountId }: MembershipKey): Account | null {
  const fact = factOf(target, environment)
  return fact === null ? null : { fact, accountId }
}

/** The same for the same mapping, whatever the order it is told in. */
export function mappingText(products: readonly SyncedProduct[]): string {
  const pairs = products.flatMap(({ id, targets }) =>
    targets.map((target: Target) => JSON.stringify([id, target.environment, targetKey(target)])),
  )
  return [...new Set(pairs)].sort().join('\n')
}
