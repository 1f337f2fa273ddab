/* Customers whose events a daemon has taken in, as the payments service would have sent them. */

import { expect } from 'vitest'
import { type SentEvent, send, sentEvent } from '../stories.js'
import { type AskedDaemon, ask } from '../world.js'

const DAY_MS = 86_400_000

/** The time of some whole days ago. */
export const daysAgo = (days: number): number => Date.now() - days * DAY_MS

export const EMAIL = 'ada@private.example'

/** A subscription to Gold: paid, renewed, paid again, and the second payment refunded. */
export function refundedStory(customerId = 'cus_ada', name = 'Ada'): readonly SentEvent[] {
  const customer = { object: 'customer', id: customerId, email: EMAIL, name }
  const product = { object: 'product', id: 'pro_gold' }
  const payment = (month: number) => ({
    ...{ object: 'payment', id: `pay_${customerId}_${month}`, method: 'CARD', customer, product },
    external_ref: `crm-${customerId}`,
  })
  const subscription = (month: number) => ({
    ...{ object: 'subscription', id: `sub_${customerId}`, payment_id: `pay_${customerId}_${month}` },
    ...{ customer, product },
  })
  const event = (what: string, type: string, days: number, data: object) =>
    sentEvent(`evt_${customerId}_${what}`, type, daysAgo(days), data)
  return [
    event('paid', 'payment.authorized', 60, payment(1)),
    event('begun', 'subscription.created', 60, subscription(1)),
    event('paid_again', 'payment.authorized', 30, payment(2)),
    event('renewed', 'subscription.renewed', 30, subscription(2)),
    event('refunded', 'payment.refunded', 10, payment(2)),
  ]
}

/** A payment of Silver that lasts. */
export function paidStory(customerId: string, at = daysAgo(5)): readonly SentEvent[] {
  const customer = { object: 'customer', id: customerId }
  const product = { object: 'product', id: 'pro_silver' }
  const data = { object: 'payment', id: `pay_${customerId}`, method: 'CARD', customer, product }
  return [sentEvent(`evt_${customerId}_silver`, 'payment.authorized', at, data)]
}

/** Has the daemon take these in, in order. */
export async function receive(
  { url }: Pick<AskedDaemon, 'url'>,
  events: readonly SentEvent[],
): Promise<void> {
  for (const event of events) expect(await send(url, event)).toMatchObject({ status: 200 })
}

const INSTANT = /\d{4}-\d\d-\d\dT[\d:.]+Z/

/** What the API says of Gold, as the page must: but for times, which the page shows in the zone of its reader. */
export async function explanationOf(
  daemon: Pick<AskedDaemon, 'url'>,
  customerId: string,
  query = '',
): Promise<RegExp> {
  const answer = await ask(daemon, `/entitlements/${customerId}/pro_gold/explanation${query}`)
  const { summary } = (await answer.json()) as { readonly summary: string }
  const parts = summary.split(INSTANT).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(parts.join('.+'))
}
