import { accountId } from '../platforms/discord-ids.js'
import type { SentEvent } from './load.js'

export const PRODUCT = 'pro_1'

/** A customer with an account in the community, whose access comes and goes. */
export interface Member {
  readonly customerId: string
  readonly accountId: string
  /** Whether they have access in the beginning. */
  readonly begins: boolean
  /** Whether they end as they began, however often their access changes meanwhile. */
  readonly flaps: boolean
  /** Whether staff had given them the role before all that. */
  readonly isStaff: boolean
}

/** As many of each kind as of any other. */
export function createMembers(count: number): readonly Member[] {
  return Array.from({ length: count }, (_, n) => ({
    customerId: `cus_${n}`,
    accountId: accountId(n + 1),
    begins: n % 2 === 0,
    flaps: n % 4 >= 2,
    isStaff: Math.floor(n / 4) % 10 === 0,
  }))
}

/** Whether a member has access after so many changes. */
export function hasAccess({ begins }: Member, changes: number): boolean {
  return begins === (changes % 2 === 0)
}

export function hasAccessInTheEnd({ begins, flaps }: Member): boolean {
  return begins === flaps
}

const BEGUN_AT = Date.UTC(2026, 0, 31, 12)

/** The event by which members have the access that they begin with. */
export function firstPayment(member: Member): SentEvent {
  return turn(member, 0)
}

/** The event that makes a member's nth change of access, from 1 on: a new payment, or the refund of the last one. */
export function change(member: Member, n: number): SentEvent {
  return turn(member, member.begins ? n : n - 1)
}

/** The same of a product that gives no role, and that nobody has in the beginning. */
export function changeElsewhere(member: Member, n: number): SentEvent {
  return turn(member, n - 1, 'pro_without_role')
}

/** Every second one pays, and the one after it refunds that. */
function turn({ customerId, accountId }: Member, n: number, product = PRODUCT): SentEvent {
  const id = `evt_${customerId}_${product}_${n}`
  const data = {
    object: 'payment',
    id: `pay_${customerId}_${product}_${Math.floor(n / 2)}`,
    method: 'CARD',
    customer: { object: 'customer', id: customerId, communityId: accountId },
    product: { object: 'product', id: product },
  }
  const type = n % 2 === 0 ? 'payment.authorized' : 'payment.refunded'
  const createdAt = new Date(BEGUN_AT + n * 60_000).toISOString()
  return { id, body: JSON.stringify({ id, type, createdAt, livemode: true, data }) }
}

export const accountsOf = (members: readonly Member[]): readonly string[] =>
  members.map(({ accountId }) => accountId)

/** Those with access, and those whom staff gave the role: they keep it. */
export function rightHolders(
  members: readonly Member[],
  isEntitled: (member: Member) => boolean,
): readonly string[] {
  return accountsOf(members.filter((member) => member.isStaff || isEntitled(member))).toSorted()
}
