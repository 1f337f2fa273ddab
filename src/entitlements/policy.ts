/* The merchant's policy: what grants and revokes on which rail, and switches; and how it applies to an event. */

import type { Rail } from '../provider/event.js'
import {
  type PaymentEventType,
  SUBSCRIPTION_EVENT_TYPES,
  type SubscriptionEventType,
} from '../provider/event-types.js'
import { type SourceEvent, SUBSCRIPTION_TYPES } from './model.js'

/** The values of each switch. */
export const SWITCHES = {
  failedRenewal: ['keep', 'revoke'],
  canceled: ['effective', 'period_end'],
  completed: ['period_end', 'keep'],
  paidCycle: ['grants', 'informs'],
} as const
type Value<Switch extends keyof typeof SWITCHES> = (typeof SWITCHES)[Switch][number]

/** What grants and revokes access, and the answers to questions that the documentation leaves open. */
export interface Policy {
  readonly grantOn: Readonly<Record<Rail, readonly PaymentEventType[]>>
  readonly revokeOn: Readonly<Record<Rail, readonly (PaymentEventType | SubscriptionEventType)[]>>
  /** `revoke`: any `payment.failed` that is a take-back ends a subscription's access, not only that of its basis. */
  readonly failedRenewal: Value<'failedRenewal'>
  /** `period_end`: a canceled subscription keeps access until any later `expires_at` in the event. */
  readonly canceled: Value<'canceled'>
  /** `keep`: access stays when the last cycle of a fixed term is over. */
  readonly completed: Value<'completed'>
  /** `informs`: only grants pay; a cycle event without a payment changes nothing. */
  readonly paidCycle: Value<'paidCycle'>
  /** Milliseconds after the newest known period end at which access ends by itself; null: never. */
  readonly lapseAfter: number | null
}

/** The provider's documented table, and nothing more. */
export const DOCUMENTED_POLICY: Policy = {
  grantOn: {
    card: ['payment.authorized', 'checkout.succeeded'],
    crypto: ['payment.succeeded'],
    unknown: ['payment.succeeded'],
  },
  revokeOn: {
    card: ['payment.failed', 'payment.refunded', 'subscription.expired'],
    crypto: ['payment.failed', 'subscription.expired'],
    unknown: ['payment.failed', 'payment.refunded', 'subscription.expired'],
  },
  failedRenewal: 'keep',
  canceled: 'effective',
  completed: 'period_end',
  paidCycle: 'grants',
  lapseAfter: null,
}

/** Types that always revoke, whatever the rows say: such a payment will never be paid. */
export const TERMINAL_TYPES: readonly PaymentEventType[] = ['checkout.canceled', 'payment.canceled']

/** The row of the table that matches an event, and its side. */
export interface PolicyRow {
  readonly rail: Rail
  readonly on: 'grant' | 'takeBack'
}

/** How the table treats an event, and the matching row; null: none matches. */
export interface Verdict {
  readonly effect: 'grant' | 'take_back' | 'none'
  readonly row: PolicyRow | null
}

type Verdicts = ReadonlyMap<SourceEvent['type'], Verdict>

interface PolicyTable extends Readonly<Record<Rail, Verdicts>> {
  readonly decisive: ReadonlySet<SourceEvent['type']>
}

const NO_VERDICT: Verdict = { effect: 'none', row: null }
const TERMINAL_VERDICT: Verdict = { effect: 'take_back', row: null }
const PAID_OR_ENDED = SUBSCRIPTION_EVENT_TYPES.filter((type) => {
  const { pays, ends } = SUBSCRIPTION_TYPES[type]
  return pays !== null || ends === 'canceled'
})

/** Cached, since every fold asks for the table of the one policy in force. */
const tables = new WeakMap<Policy, PolicyTable>()

export function tableOf(policy: Policy): PolicyTable {
  const known = tables.get(policy)
  if (known !== undefined) return known
  const card = verdictsUnder('card', policy)
  const crypto = verdictsUnder('crypto', policy)
  const unknown = verdictsUnder('unknown', policy)
  const decisive = new Set([...card.keys(), ...crypto.keys(), ...unknown.keys(), ...PAID_OR_ENDED])
  const table = { card, crypto, unknown, decisive }
  tables.set(policy, table)
  return table
}

function verdictsUnder(rail: Rail, { grantOn, revokeOn }: Policy): Verdicts {
  const verdicts = new Map<SourceEvent['type'], Verdict>()
  for (const type of TERMINAL_TYPES) verdicts.set(type, TERMINAL_VERDICT)
  for (const type of revokeOn[rail]) {
    verdicts.set(type, { effect: 'take_back', row: { rail, on: 'takeBack' } })
  }
  for (const type of grantOn[rail]) {
    if (!TERMINAL_TYPES.includes(type)) verdicts.set(type, { effect: 'grant', row: { rail, on: 'grant' } })
  }
  return verdicts
}

/**
 * How an event counts under a rail. A grant without a rail of its own also counts under `unknown`, whatever is learned
 * later: a proof may add access, but never removes what `unknown` gave.
 */
export function verdictOn(event: SourceEvent, rail: Rail, table: PolicyTable): Verdict {
  if (onlyInforms(event)) return NO_VERDICT
  const verdict = table[rail].get(event.type) ?? NO_VERDICT
  if (verdict.effect === 'grant' || event.subject !== 'payment' || event.railProof !== null) return verdict
  const byUnknown = table.unknown.get(event.type)
  return byUnknown?.effect === 'grant' ? byUnknown : verdict
}

/** Whether some row of the policy, or the documentation, makes this type grant or end access. */
export function isDecisive(type: SourceEvent['type'], policy: Policy): boolean {
  return tableOf(policy).decisive.has(type)
}

/** A payment event that names its subscription but no payment can't grant or revoke anything. */
export function onlyInforms(event: SourceEvent): boolean {
  return event.subject === 'payment' && event.paymentId === null
}
