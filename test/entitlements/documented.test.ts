import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { Rail } from '../../src/provider/event.js'
import { WIRE_TYPES } from '../../src/provider/event-types.js'
import { normalise } from '../../src/provider/normalise.js'
import { NOW } from '../daemon/running-daemon.js'
import { type Told, timeOf, wireEvent } from '../daemon/wire-events.js'
import { foldedEntitlements } from './fold-all.js'

const RAILS = ['card', 'crypto', 'unknown'] as const

/** The documented table: the types of both generations that grant, and those that take back, with the status. */
const GRANTS: Readonly<Record<Rail, readonly string[]>> = {
  card: ['payment.authorized', 'checkout.succeeded', 'CHECKOUT_SUCCESS'],
  crypto: ['payment.succeeded', 'PAYMENT_SUCCESS'],
  unknown: ['payment.succeeded', 'PAYMENT_SUCCESS'],
}
const FAILURES = { 'payment.failed': 'failed', PAYMENT_FAILED: 'failed' }
const REFUNDS = { 'payment.refunded': 'refunded', PAYMENT_REFUNDED: 'refunded' }
const EXPIRIES = { 'subscription.expired': 'expired', SUBSCRIPTION_EXPIRED: 'expired' }
const TAKE_BACKS: Readonly<Record<Rail, Readonly<Record<string, string>>>> = {
  card: { ...FAILURES, ...REFUNDS, ...EXPIRIES },
  crypto: { ...FAILURES, ...EXPIRIES },
  unknown: { ...FAILURES, ...REFUNDS, ...EXPIRIES },
}
/** Ends beyond the table, by what the documents say of a payment or a subscription: it is over. */
const OVER = {
  'payment.canceled': 'voided',
  CHECKOUT_CANCELED: 'voided',
  'subscription.canceled': 'canceled',
}
/** Begins beyond the table: a cycle was paid, whatever is known of its payment. */
const PAID_CYCLES = [
  'subscription.created',
  'subscription.renewed',
  'SUBSCRIPTION_CREATED',
  'SUBSCRIPTION_RENEWED',
]

const EVERY_TYPE = [...WIRE_TYPES.v2, ...WIRE_TYPES.v3]

/** The access that follows from deliveries, as the provider words them. */
function accessAfter(bodies: readonly string[], policy = DOCUMENTED_POLICY) {
  const events = bodies.map((body) => {
    const read = normalise(Buffer.from(body), { environment: 'live', receivedAt: NOW })
    if (!read.ok) throw new Error(read.reason)
    return read.event
  })
  return foldedEntitlements(events, policy, NOW)
}

const rows = RAILS.flatMap((rail) =>
  GRANTS[rail].flatMap((grant) =>
    Object.entries(TAKE_BACKS[rail]).map(([takeBack, status]) => ({ rail, grant, takeBack, status })),
  ),
)

it.each(rows)('$rail: $grant grants, $takeBack revokes', ({ rail, grant, takeBack, status }) => {
  const told = { rail, subscription: /^subscription/i.test(takeBack) ? 'sub_1' : null }
  const given = wireEvent(grant, told)
  const takenBack = wireEvent(takeBack, { ...told, minutes: 10 })
  const [since, until] = [timeOf(0), timeOf(10)]
  expect(accessAfter([given])).toMatchObject([{ active: true, status: 'active', since, until: null }])
  const ended = [{ active: false, status, since: null, until }]
  expect(accessAfter([given, takenBack])).toMatchObject(ended)
  expect(accessAfter([takenBack, given])).toMatchObject(ended)
})

describe('of every type of both generations', () => {
  /** What each leaves, after the grant if there is one. */
  function statusesAfter(rail: Rail, grant: string | null, policy = DOCUMENTED_POLICY): Map<string, string> {
    const told: Told = { rail, subscription: 'sub_1' }
    return new Map(
      EVERY_TYPE.map((type) => {
        const before = grant === null ? [] : [wireEvent(grant, told)]
        const [shown] = accessAfter([...before, wireEvent(type, { ...told, minutes: 10 })], policy)
        return [type, shown?.active ? 'active' : String(shown?.status)]
      }),
    )
  }
  const activeIn = (statuses: Map<string, string>) =>
    EVERY_TYPE.filter((type) => statuses.get(type) === 'active').sort()

  it.each(RAILS)('%s: none takes access back but the table, and what says that it is over', (rail) => {
    const after = statusesAfter(rail, GRANTS[rail][0] ?? null)
    const ended = Object.fromEntries([...after].filter(([, status]) => status !== 'active'))
    expect(ended).toEqual({ ...TAKE_BACKS[rail], ...OVER })
  })

  it.each<[rail: Rail, proofs: readonly string[]]>([
    ['card', []],
    ['crypto', []],
    // Their types alone prove a card, so that its row is theirs.
    ['unknown', ['payment.authorized', 'CHECKOUT_SUCCESS']],
  ])('%s: none gives access but the table, and a paid cycle', (rail, proofs) => {
    expect(activeIn(statusesAfter(rail, null))).toEqual([...GRANTS[rail], ...proofs, ...PAID_CYCLES].sort())
  })

  it('none but the table gives access where a paid cycle only informs', () => {
    const after = statusesAfter('card', null, { ...DOCUMENTED_POLICY, paidCycle: 'informs' })
    expect(activeIn(after)).toEqual([...GRANTS.card].sort())
  })
})
