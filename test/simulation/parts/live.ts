/*
 * The merchant's sales in the live environment. Its events, customers, payments and products have the ids of the other
 * environment, and nothing else in common with it.
 */

import { signBody } from '../../../src/provider/signature.js'
import { sentEvent } from '../../stories.js'
import type { Chance } from '../machine/chance.js'
import { trace } from '../machine/trace.js'
import type { Json, World } from '../world.js'
import { communityIdOf, OUTSIDERS, PEOPLE } from './communities.js'

export const LIVE_SECRET = 'whsec_simulated_elsewhere'
/** In what is known about every customer here, and nowhere else. */
export const LIVE_HOST = 'live.example'

interface Sale {
  readonly customerId: string
  readonly productId: string
  isRefunded: boolean
}

/** What was sold, and what the daemon has not taken yet. */
export interface LiveSales {
  /** By the id of the payment. */
  readonly sales: Map<string, Sale>
  readonly unsent: { readonly body: string }[]
  /** The ids of its events that events of the other environment have, too. */
  readonly shared: Set<string>
}

export const noSales = (): LiveSales => ({ sales: new Map(), unsent: [], shared: new Set() })

export const liveEmailOf = (customerId: string): string => `${customerId}@${LIVE_HOST}`

/** A sale, a refund, or an account of somebody who is no customer in the other environment. */
export async function sellLive(world: World, chance: Chance): Promise<void> {
  const { service, live, operate } = world
  const [payment, customerId] = [chance.pick(service.paid()), chance.pick(service.known())]
  if (payment === undefined || customerId === undefined) return
  if (chance.is(0.3)) {
    const communityId = communityIdOf(OUTSIDERS + chance.below(PEOPLE - OUTSIDERS))
    await operate(`PUT /customers/${customerId}/identities?environment=live`, { communityId })
  }
  const sale = live.sales.get(payment)
  if (sale?.isRefunded) return
  if (sale !== undefined) {
    sale.isRefunded = true
    live.unsent.push(eventOf(payment, sale, `evt_live_${payment}`, 'payment.refunded'))
  } else {
    const own = { customerId, productId: chance.pick(Object.values(service.products)), isRefunded: false }
    live.sales.set(payment, own)
    const known = await operate('GET /events?environment=sandbox&limit=50')
    const ids: readonly string[] = known.status === 200 ? known.json.items.map((one: Json) => one.id) : []
    const id = ids.find((one) => one.startsWith('evt_') && !live.shared.has(one))
    if (id !== undefined) live.shared.add(id)
    live.unsent.push(eventOf(payment, own, id ?? `evt_sale_${payment}`, 'payment.authorized'))
  }
  await deliverLive(world)
}

function eventOf(payment: string, { customerId, productId }: Sale, id: string, type: string) {
  const customer = { object: 'customer', id: customerId, email: liveEmailOf(customerId) }
  const product = { object: 'product', id: productId }
  return sentEvent(id, type, Date.now(), {
    object: 'payment',
    id: payment,
    method: 'CARD',
    customer,
    product,
  })
}

/** Sends what waits, each once more. */
export async function deliverLive({ url, live }: World): Promise<void> {
  for (const event of live.unsent.splice(0)) {
    const timestamp = String(Math.floor(Date.now() / 1_000))
    const headers = {
      'Content-Type': 'application/json',
      'X-Webhook-Timestamp': timestamp,
      'X-Webhook-Signature': signBody(LIVE_SECRET, timestamp, Buffer.from(event.body)),
    }
    const { body } = event
    const status = await fetch(`${url}/webhooks/live`, { method: 'POST', headers, body }).then(
      (response) => response.status,
      () => 0,
    )
    trace(`live: ${status}`)
    if (status !== 200) live.unsent.push(event)
  }
}
