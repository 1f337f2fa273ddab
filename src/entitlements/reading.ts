import type { PaymentEvent, Rail, SubscriptionEvent } from '../provider/event.js'
import type { EndReason } from './model.js'
import { compareText } from './order.js'
import { type GrantType, type Policy, type RevokeType, TERMINAL_TYPES } from './policy.js'

/** The events that a source is folded from. */
export type SourceEvent = PaymentEvent | SubscriptionEvent

/** What the policy's table makes of an event. */
export type Effect = 'grant' | 'take_back' | 'none'

/** The row of the policy's table that an event meets, and on which side. */
export interface PolicyRow {
  readonly rail: Rail
  readonly on: 'grant' | 'takeBack'
}

const GRANT_ROWS: Readonly<Record<Rail, PolicyRow>> = {
  card: { rail: 'card', on: 'grant' },
  crypto: { rail: 'crypto', on: 'grant' },
  unknown: { rail: 'unknown', on: 'grant' },
}

const TAKE_BACK_ROWS: Readonly<Record<Rail, PolicyRow>> = {
  card: { rail: 'card', on: 'takeBack' },
  crypto: { rail: 'crypto', on: 'takeBack' },
  unknown: { rail: 'unknown', on: 'takeBack' },
}

/** An event as the walk meets it: its place in the order, and what the table makes of it. */
export interface Reading<E extends SourceEvent = SourceEvent> {
  readonly event: E
  readonly effect: Effect
  /** Position in the walk: a lower one is walked earlier. */
  readonly index: number
}

/** Reads every event under its rail's row and puts all in the order in which they are walked. */
export function readEvents<E extends SourceEvent>(
  events: readonly E[],
  railOf: (event: E) => Rail,
  policy: Policy,
): Reading<E>[] {
  return events
    .map((event) => {
      const effect = effectOf(event, railOf(event), policy)
      return { event, effect, rank: rankOf(event, effect) }
    })
    .sort(
      (a, b) =>
        a.event.createdAt - b.event.createdAt || a.rank - b.rank || compareText(a.event.id, b.event.id),
    )
    .map(({ event, effect }, index) => ({ event, effect, index }))
}

/**
 * The row that an event meets; null: none, be it that the documents take back whatever the rows say.
 *
 * A grant that shows no rail itself counts under `unknown` too, whatever is learned later:
 * a proof may add access, and never takes away what `unknown` gave.
 */
export function rowOf(event: SourceEvent, rail: Rail, policy: Policy): PolicyRow | null {
  if (onlyInforms(event)) return null
  if (event.subject === 'payment' && !isTerminal(event)) {
    if (policy.grantOn[rail].includes(event.type)) return GRANT_ROWS[rail]
    if (event.railProof === null && policy.grantOn.unknown.includes(event.type)) return GRANT_ROWS.unknown
  }
  return policy.revokeOn[rail].includes(event.type) ? TAKE_BACK_ROWS[rail] : null
}

export function effectOf(event: SourceEvent, rail: Rail, policy: Policy): Effect {
  if (isTerminal(event)) return 'take_back'
  const row = rowOf(event, rail, policy)
  if (row === null) return 'none'
  return row.on === 'grant' ? 'grant' : 'take_back'
}

/** Whether the documents themselves say that the payment will never be paid. */
function isTerminal(event: SourceEvent): boolean {
  return event.subject === 'payment' && !onlyInforms(event) && TERMINAL_TYPES.includes(event.type)
}

/** A payment event that names its subscription but no payment has nothing to grant, or to take back. */
export function onlyInforms(event: SourceEvent): boolean {
  return event.subject === 'payment' && event.paymentId === null
}

/** At one instant: what only informs, then what gives, then what ends, so that a take-back has the last word. */
function rankOf({ type }: SourceEvent, effect: Effect): number {
  if (effect === 'take_back') return 4
  if (effect === 'grant' || type === 'payment.succeeded') return 1
  if (type === 'subscription.created' || type === 'subscription.renewed') return 2
  if (type === 'subscription.canceled') return 3
  return 0
}

/** Whether some row of the policy, or the documents whatever it says, gives or ends access on this type. */
export function isDecisive(type: SourceEvent['type'], policy: Policy): boolean {
  return (
    (TERMINAL_TYPES as readonly string[]).includes(type) ||
    PAID_OR_ENDED.includes(type) ||
    Object.values(policy.grantOn).some((row) => row.includes(type as GrantType)) ||
    Object.values(policy.revokeOn).some((row) => row.includes(type))
  )
}

const PAID_OR_ENDED: readonly SourceEvent['type'][] = [
  'subscription.created',
  'subscription.renewed',
  'subscription.canceled',
]

/** What a take-back of each type is called once access has ended by it. */
export const END_REASON_OF: Readonly<Record<RevokeType, EndReason>> = {
  'payment.authorized': 'failed',
  'payment.succeeded': 'failed',
  'payment.completed': 'failed',
  'payment.failed': 'failed',
  'payment.canceled': 'voided',
  'payment.refunded': 'refunded',
  'payment.partially_refunded': 'refunded',
  'payment.chargeback': 'charged_back',
  'payment.settled': 'failed',
  'checkout.initiated': 'failed',
  'checkout.succeeded': 'failed',
  'checkout.failed': 'failed',
  'checkout.canceled': 'voided',
  'subscription.created': 'expired',
  'subscription.renewed': 'expired',
  'subscription.updated': 'expired',
  'subscription.past_due': 'expired',
  'subscription.canceled': 'canceled',
  'subscription.expired': 'expired',
}
