import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { ACCOUNT_FACTS, type AccountFact, type Accounts, PLATFORMS } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { accountsIn } from '../provider/facts.js'
import {
  type Change,
  changeLogEpoch,
  formatCursor,
  latestCursor,
  loadChanges,
  newestCursor,
  numberIn,
} from '../store/changes.js'
import { loadCustomer, loadCustomers } from '../store/customers.js'
import { engineOf } from '../store/engine.js'
import { type EntitlementRecord, loadEntitlements } from '../store/entitlements.js'
import { readEvent } from '../store/event-questions.js'
import {
  findMemberships,
  type Membership,
  type MembershipKey,
  type MembershipReason,
  membershipKey,
} from '../store/memberships.js'
import { type Db, ENVIRONMENTS } from '../store/schema.js'
import {
  type AccountPlace,
  type LinkedAccount,
  loadAccountHolders,
  loadSyncMarks,
  loadSyncSettings,
} from '../store/sync-state.js'
import type { SyncContext } from './context.js'
import type { Desire, NewDesire } from './membership.js'
import { parseTargetKey, type SyncedProduct, type Target, targetKey } from './target.js'

/** Bounds memory, and how long an update blocks requests, or its write blocks deliveries. */
const CHUNK = 250

/**
 * Updates the desired memberships from all changes since the last time: access by the change log, links and config by
 * marks. A change made meanwhile has a cursor or mark after the ones read, so the next update sees it.
 * @param onUpdated called after every chunk that changed something
 */
export function createUpdateDesired(context: SyncContext, onUpdated: () => void): () => Promise<void> {
  const { db, writeSync } = context
  /** The mapping and change log for which everyone was marked; null: compare with the stored ones first. */
  let settledFor: readonly SyncedProduct[] | null = null
  /** Why customers are marked. A restart during the update resets it to `link`. */
  let markedFor: 'link' | 'config' | 'restore' = 'link'

  /** Marks everyone if the mapping changed, or the change log was replaced by a restore. */
  async function settle(mapped: readonly SyncedProduct[], epoch: string): Promise<void> {
    if (settledFor === mapped) return
    const stored = await loadSyncSettings(db)
    // Where several processes write, one of version 1.0.0 may have taken off marks that it had not read: marked again once.
    const version = engineOf(db).isRemote ? '2\n' : ''
    const targets = createHash('sha256')
      .update(`${version}${mappingText(mapped)}`)
      .digest('hex')
    const isSameLog = stored.cursor !== null && numberIn(epoch, stored.cursor) !== null
    if (stored.targets !== targets || !isSameLog) {
      markedFor = stored.cursor !== null && !isSameLog ? 'restore' : 'config'
      // Read before marking, so that later changes are looked at again.
      const cursor = formatCursor(epoch, await latestCursor(db))
      for (const environment of ENVIRONMENTS) {
        for (const fact of ACCOUNT_FACTS) {
          let place: AccountPlace | null = { environment, fact, accountId: '', customerId: '' }
          while (place !== null) place = await writeSync('markLinkedCustomers', place)
        }
      }
      await writeSync('saveSyncSettings', { targets, cursor })
    }
    settledFor = mapped
  }

  /** @returns whether there may be more */
  async function updateSome(mapped: readonly SyncedProduct[], epoch: string): Promise<boolean> {
    const { cursor: kept } = await loadSyncSettings(db)
    const after = (kept === null ? null : numberIn(epoch, kept)) ?? 0
    const changed = await loadChanges(db, null, after, CHUNK)
    const { marks, seqs } = await loadSyncMarks(db, CHUNK)
    if (changed.length === 0 && marks.length === 0) {
      markedFor = 'link'
      return false
    }
    const desires: NewDesire[] = []
    for (const environment of ENVIRONMENTS) {
      const customers = [...changed, ...marks].filter((one) => one.environment === environment)
      if (customers.length === 0) continue
      const opens = productsOfTargets(mapped, environment)
      const customerIds = [...new Set(customers.map(({ customerId }) => customerId))]
      const inputs = await loadDesireInputs(db, environment, customerIds)
      // The inputs include later changes, which may be the reason: also those that the log doesn't show yet.
      const upTo = await newestCursor(db)
      const since = await loadChanges(db, null, changed.at(-1)?.cursor ?? after, CHUNK, { upTo })
      const marked = new Set(marks.map((one) => `${one.environment} ${one.customerId}`))
      for (const desire of planDesires(inputs, opens)) {
        const isMarked = marked.has(`${environment} ${desire.customerId}`)
        const reason = await reasonOf(desire, inputs, opens, { isMarked, changed: [...changed, ...since] })
        desires.push({ ...desire, reason })
      }
    }
    const cursor = formatCursor(epoch, changed.at(-1)?.cursor ?? after)
    await writeSync('saveDesires', { desires, cursor, marks: seqs })
    if (marks.length < CHUNK) markedFor = 'link'
    if (desires.length > 0) onUpdated()
    return changed.length === CHUNK || marks.length === CHUNK
  }

  async function reasonOf(
    desire: Desire,
    { environment, activeProducts, stored }: DesireInputs,
    opens: ProductsOfTarget,
    { isMarked, changed }: { readonly isMarked: boolean; readonly changed: readonly Change[] },
  ): Promise<MembershipReason> {
    const { customerId, desired, target } = desire
    const opening = opens.get(target) ?? new Set()
    const own = changed.filter(
      (one) =>
        one.environment === environment &&
        one.customerId === customerId &&
        one.after.active === desired &&
        opening.has(one.productId),
    )
    const last = own.at(-1)
    if (last !== undefined && !(isMarked && markedFor === 'link' && (await isLinkedSince(last, desire))))
      return { productIds: [...new Set(own.map(({ productId }) => productId))], cause: last.cause }
    const opened = (activeProducts.get(customerId) ?? []).filter((id) => opening.has(id))
    // A role that the config gives no more was given by these.
    const former = stored.find((one) => membershipKey(one) === membershipKey(desire))?.reason?.productIds
    const productIds = opened.length > 0 ? opened : (former ?? [])
    const fact = accountOf(desire)?.fact
    const isLinked = markedFor === 'link' && fact !== undefined
    const customer = isLinked ? await loadCustomer(db, environment, customerId) : undefined
    const eventId = fact === undefined ? null : (customer?.facts[fact]?.by ?? null)
    return { productIds, cause: { kind: markedFor, eventId } }
  }

  /** Whether the account became the customer's own after they had access: then it is the link that gives the role. */
  async function isLinkedSince({ at, cause }: Change, desire: Desire): Promise<boolean> {
    const fact = accountOf(desire)?.fact
    if (fact === undefined || !desire.desired) return false
    const { environment, customerId } = desire
    // The stored fact: one that later events only repeat is by the event that brought it.
    const link = (await loadCustomers(db, environment, [customerId])).get(customerId)?.facts[fact]
    if (link === undefined || link.by === cause.eventId) return false
    const event = await readEvent(db, { environment, eventId: link.by })
    return event !== null && event.receivedAt > at
  }

  return async () => {
    const mapped = context.products
    const isMapped = mapped.some(({ targets }) => targets.length > 0)
    // Without roles and groups there is nothing to write; adding the first target marks everyone.
    if (!isMapped && (await findMemberships(db, {}, 1)).length === 0) return
    const epoch = await changeLogEpoch(db)
    await settle(mapped, epoch)
    while (await updateSome(mapped, epoch)) await turn()
  }
}

/** @param more further accounts, and the customers they would belong to */
export async function loadDesireInputs(
  db: Db,
  environment: Environment,
  customerIds: readonly string[],
  more: readonly LinkedAccount[] = [],
): Promise<DesireInputs> {
  const customers = [...(await loadCustomers(db, environment, customerIds)).values()]
  const own = customers.flatMap(({ customerId, facts }) => linkedAccounts(customerId, accountsIn(facts)))
  const former = await findMemberships(db, { environments: [environment], customerIds })
  const accounts = distinct([...own, ...more, ...former.flatMap((key) => accountOf(key) ?? [])])
  if (accounts.length === 0)
    return { environment, accounts, links: [], activeProducts: new Map(), stored: [] }
  const links = await loadAccountHolders(db, environment, accounts)
  const linked = [...new Set([...links, ...more].map(({ customerId }) => customerId))]
  return {
    environment,
    accounts,
    links,
    activeProducts: await loadActiveProducts(db, environment, linked),
    stored: await findMemberships(db, {
      environments: [environment],
      accountIds: accounts.map(({ accountId }) => accountId),
    }),
  }
}

export function linkedAccounts(customerId: string, accounts: Accounts): readonly LinkedAccount[] {
  const own = Object.entries(accounts) as [AccountFact, string][]
  return own.map(([fact, accountId]) => ({ fact, accountId, customerId }))
}

/** Products that each customer has access to, as last saved. */
export async function loadActiveProducts(db: Db, environment: Environment, customerIds: readonly string[]) {
  const found = [...(await loadEntitlements(db, environment, customerIds))]
  const activeIn = (records: readonly EntitlementRecord[]) =>
    records.filter(({ active }) => active).map(({ productId }) => productId)
  return new Map(found.map(([customerId, records]) => [customerId, activeIn(records)]))
}

function distinct(accounts: readonly Account[]): readonly Account[] {
  return [...new Map(accounts.map((one) => [`${one.fact} ${one.accountId}`, one])).values()]
}

export type Account = Pick<LinkedAccount, 'fact' | 'accountId'>

/** Everything that decides the memberships of some accounts, in one environment. */
export interface DesireInputs {
  readonly environment: Environment
  /** The accounts; the other fields are complete for these. */
  readonly accounts: readonly Account[]
  readonly links: readonly LinkedAccount[]
  readonly activeProducts: ReadonlyMap<string, readonly string[]>
  readonly stored: readonly Membership[]
}

/** By `targetKey`, the products that give membership in it, in one environment. */
export type ProductsOfTarget = ReadonlyMap<string, ReadonlySet<string>>

export function productsOfTargets(products: readonly SyncedProduct[], environment: Environment) {
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
 * The desired memberships of these accounts that differ from the stored ones. An account belongs in a target if any
 * customer linked to it has access to any of its products. Pairs that were never desired are left out.
 */
export function planDesires(inputs: DesireInputs, products: ProductsOfTarget): readonly Desire[] {
  const { environment, accounts } = inputs
  return accounts.flatMap(({ fact, accountId }) => {
    const customers = inputs.links
      .filter((link) => link.fact === fact && link.accountId === accountId)
      .map(({ customerId }) => customerId)
      .sort()
    const stored = new Map(
      inputs.stored
        .filter((one) => one.accountId === accountId && factOf(one.target, environment) === fact)
        .map((one) => [one.target, one]),
    )
    const configured = [...products.keys()].filter((target) => factOf(target, environment) === fact)
    return [...new Set([...configured, ...stored.keys()])].flatMap((target) => {
      const known = stored.get(target)
      const wanting = customers.filter((customer) =>
        inputs.activeProducts.get(customer)?.some((product) => products.get(target)?.has(product)),
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

/** Prefers the known customer, to avoid a write that changes nothing. */
function nearest(customers: readonly string[], known: string | undefined): string | undefined {
  const [first = known] = customers
  return known !== undefined && customers.includes(known) ? known : first
}

/** The fact that holds the account for memberships in a target. */
function factOf(target: string, environment: Environment): AccountFact | null {
  const adapter = parseTargetKey(target, environment)?.adapter
  return adapter === undefined ? null : PLATFORMS[adapter].account
}

/** The account of a membership; null if no adapter knows the target. */
export function accountOf({ environment, target, accountId }: MembershipKey): Account | null {
  const fact = factOf(target, environment)
  return fact === null ? null : { fact, accountId }
}

/** A canonical text of the mapping, independent of order. */
function mappingText(products: readonly SyncedProduct[]): string {
  const pairs = products.flatMap(({ id, targets }) =>
    targets.map((target: Target) => JSON.stringify([id, target.environment, targetKey(target)])),
  )
  return [...new Set(pairs)].sort().join('\n')
}
