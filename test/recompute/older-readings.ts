import { createHash } from 'node:crypto'
import fc from 'fast-check'
import type { Kysely } from 'kysely'
import type { WriteBatch } from '../../src/ingest/commit.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import type { Database } from '../../src/store/schema.js'
import { deliveryOf } from '../ingest/wire.js'
import { deliveries } from './recompute-store.js'

interface WireEvent {
  id?: unknown
  type?: unknown
  createdAt?: unknown
  data: Record<string, unknown>
}

/** How a program before today's might have understood an event: as today's would if this had been sent. */
const MISREADINGS = {
  'as today': (event) => event,
  'no product': (event) => withData(event, { product: null }),
  'another product': (event) => withData(event, { product: { id: 'pro_misread' } }),
  'no customer': (event) => withData(event, { customer: null }),
  'another customer': (event) => withData(event, { customer: { id: 'cus_misread' } }),
  'another email': (event) =>
    withData(event, { customer: { ...Object(event.data.customer), email: 'misread@example.com' } }),
  'no payment': (event) => withData(event, { payment_id: null }),
  'another payment': (event) => withData(event, { payment_id: 'pay_1' }),
  'another subscription': (event) => withData(event, { subscription_id: 'sub_misread' }),
  'no subscription': (event) => withData(event, { subscription_id: null }),
  'another type': (event) => ({ ...event, type: 'payment.succeeded' }),
  'a day later': (event) => ({ ...event, createdAt: dayAfter(event.createdAt) }),
  'no type': ({ type: _, ...event }) => event,
  'no time': ({ createdAt: _, ...event }) => event,
  'nothing at all': ({ id: _, ...event }) => event,
} satisfies Record<string, (event: WireEvent) => WireEvent>

function withData(event: WireEvent, data: Record<string, unknown>): WireEvent {
  return { ...event, data: { ...event.data, ...data } }
}

function dayAfter(time: unknown): string {
  return new Date(Date.parse(String(time)) + 86_400_000).toISOString()
}

type Misreading = keyof typeof MISREADINGS

const NAMES = Object.keys(MISREADINGS) as Misreading[]

/** A delivery, and how it was understood when it came. */
export interface MisreadDelivery {
  readonly delivery: Delivery
  readonly misreading: Misreading
}

/** Histories of which some events were misunderstood. People have a detail and a reference each. */
export const misreadDeliveries: fc.Arbitrary<readonly MisreadDelivery[]> = fc
  .tuple(
    deliveries,
    fc.infiniteStream(
      fc.oneof(
        { weight: 2, arbitrary: fc.constant<Misreading>('as today') },
        { weight: 1, arbitrary: fc.constantFrom(...NAMES) },
      ),
    ),
  )
  .map(([all, misreadings]) =>
    all.map((delivery, n) => ({
      delivery: withPerson(delivery, n),
      misreading: misreadings.next().value,
    })),
  )

function withPerson(delivery: Delivery, n: number): Delivery {
  const event = JSON.parse(delivery.body.toString()) as WireEvent
  const { customer } = event.data as { customer?: { id: string } | null }
  if (!customer) return delivery
  const person = { ...customer, email: `${customer.id}.${n % 4}@example.com` }
  const body = JSON.stringify(withData(event, { customer: person, metadata: { order: `order_${n % 3}` } }))
  return deliveryOf(body, { environment: delivery.environment, receivedAt: delivery.receivedAt })
}

/** Takes deliveries in as a program would that understood them so, and leaves the bytes that really came. */
export async function takeInMisread(
  { db, writeBatch }: { readonly db: Kysely<Database>; readonly writeBatch: WriteBatch },
  misread: readonly MisreadDelivery[],
): Promise<void> {
  for (const [n, { delivery, misreading }] of misread.entries()) {
    const sent = JSON.parse(delivery.body.toString()) as WireEvent
    // A member that nobody reads: bytes of its own, even where two events would read alike.
    const understood = JSON.stringify({ ...MISREADINGS[misreading](sent), n })
    const [receipt] = (await writeBatch([deliveryOf(understood, { environment: delivery.environment })]))
      .receipts
    if (receipt?.disposition === 'duplicate') throw new Error('each event comes once')
    const sha256 = createHash('sha256').update(delivery.body).digest('hex')
    const id = receipt?.id ?? `sha256:${createHash('sha256').update(understood).digest('hex')}`
    await db
      .updateTable('events')
      .set({
        body: delivery.body,
        body_sha256: sha256,
        headers: JSON.stringify(delivery.headers),
        event_id: id.startsWith('sha256:') ? `sha256:${sha256}` : id,
      })
      .where('environment', '=', delivery.environment)
      .where('event_id', '=', id)
      .execute()
  }
}
