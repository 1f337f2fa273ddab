import { describe, expect, it } from 'vitest'
import type { Rail } from '../../src/provider/event.js'
import { SAMPLE_TYPES } from '../../src/provider/sample-event.js'
import { entitlement } from './observed.js'
import { type RunningDaemon, runDaemon, send, sharedDaemon } from './running-daemon.js'
import { storedEvents } from './stored.js'
import { type Told, timeOf, wireEvent } from './wire-events.js'

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

const EVERY_TYPE = [...SAMPLE_TYPES.v2, ...SAMPLE_TYPES.v3]

function isSubscriptionType(type: string): boolean {
  return /^subscription/i.test(type)
}

async function deliver(daemon: RunningDaemon, type: string, told: Told): Promise<void> {
  const answer = await send(daemon, wireEvent(type, told))
  expect(await answer.json()).toMatchObject({ received: true })
}

describe('the documented table', () => {
  const inOrder = sharedDaemon()
  const reversed = sharedDaemon()
  const rows = RAILS.flatMap((rail) =>
    GRANTS[rail].flatMap((grant) =>
      Object.entries(TAKE_BACKS[rail]).map(([takeBack, status]) => ({ rail, grant, takeBack, status })),
    ),
  )

  it.each(rows)('$rail: $grant gives, $takeBack takes back', async ({ rail, grant, takeBack, status }) => {
    const row = `${rail}_${grant}_${takeBack}`
    const customer = `cus_${row}`
    const subscription = isSubscriptionType(takeBack) ? `sub_${row}` : null
    const told = { rail, customer, payment: `pay_${row}`, subscription }
    const given = wireEvent(grant, told)
    const takenBack = wireEvent(takeBack, { ...told, minutes: 10 })
    const [since, until] = [0, 10].map((minutes) => new Date(timeOf(minutes)).toISOString())

    await send(inOrder(), given)
    const begun = await entitlement(inOrder(), { customer })
    expect(begun).toMatchObject({ active: true, status: 'active', since, until: null })
    await send(inOrder(), takenBack)
    const ended = await entitlement(inOrder(), { customer })
    expect(ended).toMatchObject({ active: false, status, since: null, until })
    const stored = await storedEvents(inOrder(), { customer })
    expect(stored).toMatchObject([{ disposition: 'applied' }, { disposition: 'applied' }])

    for (const body of [takenBack, given]) await send(reversed(), body)
    expect(await entitlement(reversed(), { customer })).toEqual(ended)
  })
})

describe('every type of both generations', () => {
  /** Sends each type about a customer, payment and subscription of its own, after the grant if there is one. */
  async function activeAfterEach(
    rail: Rail,
    grant: string | null,
    config = {},
  ): Promise<Map<string, string>> {
    const daemon = await runDaemon({ config })
    const told = (type: string): Told => {
      return { rail, customer: `cus_${type}`, payment: `pay_${type}`, subscription: `sub_${type}` }
    }
    for (const type of EVERY_TYPE) {
      if (grant !== null) await deliver(daemon, grant, told(type))
      await deliver(daemon, type, { ...told(type), minutes: 10 })
    }
    const shown = await Promise.all(
      EVERY_TYPE.map((type) => entitlement(daemon, { customer: `cus_${type}` })),
    )
    return new Map(
      EVERY_TYPE.map((type, index) => [type, shown[index]?.active ? 'active' : String(shown[index]?.status)]),
    )
  }

  it.each(RAILS)('%s: none takes access back but the table, and what says that it is over', async (rail) => {
    const after = await activeAfterEach(rail, GRANTS[rail][0] ?? null)
    const ended = Object.fromEntries([...after].filter(([, status]) => status !== 'active'))
    expect(ended).toEqual({ ...TAKE_BACKS[rail], ...OVER })
  })

  it.each<[rail: Rail, proofs: readonly string[]]>([
    ['card', []],
    ['crypto', []],
    // Their types alone prove a card, so that its row is theirs.
    ['unknown', ['payment.authorized', 'CHECKOUT_SUCCESS']],
  ])('%s: none gives access but the table, and a paid cycle', async (rail, proofs) => {
    const after = await activeAfterEach(rail, null)
    const begun = EVERY_TYPE.filter((type) => after.get(type) === 'active')
    expect(begun.sort()).toEqual([...GRANTS[rail], ...proofs, ...PAID_CYCLES].sort())
  })

  it('none but the table gives access where a paid cycle only informs', async () => {
    const after = await activeAfterEach('card', null, { policy: { paidCycle: 'informs' } })
    const begun = EVERY_TYPE.filter((type) => after.get(type) === 'active')
    expect(begun.sort()).toEqual([...GRANTS.card].sort())
  })
})

describe('a customer who is told late', () => {
  it('has access since the first event, which waited', async () => {
    const daemon = await runDaemon()
    const checkout = await send(daemon, wireEvent('CHECKOUT_SUCCESS', { customer: null }))
    expect(await checkout.json()).toMatchObject({ disposition: 'held' })
    expect(await storedEvents(daemon)).toMatchObject([{ disposition: 'held', reason: 'customer_unknown' }])
    expect(await entitlement(daemon)).toMatchObject({ active: false, status: 'none' })

    const payment = await send(daemon, wireEvent('PAYMENT_SUCCESS', { minutes: 5 }))
    expect(await payment.json()).toMatchObject({ disposition: 'applied' })
    const since = new Date(timeOf(0)).toISOString()
    expect(await entitlement(daemon)).toMatchObject({ active: true, status: 'active', since })
    expect(await storedEvents(daemon)).toMatchObject([
      { type: 'checkout.succeeded', disposition: 'applied', reason: null },
      { type: 'payment.succeeded', disposition: 'applied', reason: null },
    ])
  })

  it('has none by a bare checkout until something proves the card', async () => {
    const daemon = await runDaemon()
    const bare = await send(daemon, wireEvent('checkout.succeeded', { rail: 'unknown' }))
    expect(await bare.json()).toMatchObject({ disposition: 'held' })
    expect(await storedEvents(daemon)).toMatchObject([{ disposition: 'held', reason: 'rail_unknown' }])
    expect(await entitlement(daemon)).toMatchObject({ active: false, status: 'none' })

    await deliver(daemon, 'payment.settled', { rail: 'unknown', minutes: 5 })
    expect(await entitlement(daemon)).toMatchObject({
      active: true,
      since: new Date(timeOf(0)).toISOString(),
    })
  })
})
