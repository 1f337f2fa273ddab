import { MANUAL_ENDPOINT } from '../provider/endpoint.js'
import { type Environment, type ManualEvent, type Normalized, parseManualEvent } from '../provider/event.js'
import { BODY_ID_PREFIX } from '../provider/ids.js'
import { normalise } from '../provider/normalise.js'
import type { DeliveredEvent, DeliveryInput } from '../store/events.js'
import { sha256Of } from '../store/stored-form.js'
import type { ManualAct } from './delivery.js'
import type { Known } from './known.js'

/** A parsed delivery: everything that can be known without the store. */
export interface PreparedDelivery extends DeliveredEvent {
  readonly normalized: Normalized
}

const PREPARED = Symbol('prepared')

/** Reads each delivery once: also before it is written, somebody may ask what it is about. */
export function prepare(delivery: DeliveryInput): PreparedDelivery {
  // Kept with the delivery: a weak map holds what was in it until the next collection of the whole heap.
  const kept: DeliveryInput & { [PREPARED]?: PreparedDelivery } = delivery
  kept[PREPARED] ??= read(delivery)
  return kept[PREPARED]
}

function read(delivery: DeliveryInput): PreparedDelivery {
  const { body, reading } = delivery
  if (reading !== undefined) {
    // Its bytes can't be read again: the given reading is stored.
    const { event, ...came } = reading
    const left = body.byteLength === 0 ? null : body
    const { reading: _, ...rest } = delivery
    return { ...rest, ...came, body: left, eventId: event.id, normalized: { ok: true, event } }
  }
  const normalized = delivery.headers === null ? readAct(body) : readDelivered(delivery)
  const bodySha256 = sha256Of(body)
  return { ...delivery, normalized, bodySha256, eventId: eventIdOf(normalized, bodySha256) }
}

function readDelivered({ body, headers, environment, receivedAt, aheadAtMostMs }: DeliveryInput): Normalized {
  return normalise(body, { environment, receivedAt, aheadAtMostMs, isReport: headers === 'reported' })
}

function readAct(body: Buffer): Normalized {
  const event = parseManualEvent(body)
  return event === null ? { ok: false, reason: 'normalizer_failed', id: null } : { ok: true, event }
}

/** A change by hand, at the instant of writing. Its body is its event: only Latchkey writes it. */
function prepareAct({ environment, undated }: ManualAct, createdAt: number, now: number): PreparedDelivery {
  const event: ManualEvent = { ...undated, createdAt }
  const body = Buffer.from(JSON.stringify(event))
  return {
    environment,
    endpoint: MANUAL_ENDPOINT,
    body,
    bodySha256: sha256Of(body),
    headers: null,
    receivedAt: now,
    eventId: event.id,
    normalized: { ok: true, event },
  }
}

/** Null if the body has no usable id. */
export function ownIdOf(normalized: Normalized): string | null {
  return normalized.ok ? normalized.event.id : normalized.id
}

export function eventIdOf(normalized: Normalized, bodySha256: string): string {
  return ownIdOf(normalized) ?? `${BODY_ID_PREFIX}${bodySha256}`
}

/**
 * Sets the time of each change by hand: now, but after all earlier changes to the same customer, even if the clock
 * stood still or was set back. So their order is the order of writing. An erasure comes after everything stored about
 * the customer: the provider's clock may be ahead of ours.
 */
export async function dateActs(
  incoming: readonly (PreparedDelivery | ManualAct)[],
  knownOf: (environment: Environment) => Pick<Known, 'acts' | 'sourcesOf'>,
  now: number,
) {
  const newest = new Map<string, number>()
  const dated: PreparedDelivery[] = []
  for (const one of incoming) {
    if (!('undated' in one)) {
      dated.push(one)
      continue
    }
    const { environment, undated } = one
    const { customerId, type } = undated
    const customer = `${environment} ${customerId}`
    const acts = newest.has(customer) ? undefined : await knownOf(environment).acts([customerId])
    const earlier = (acts?.get(customerId) ?? []).map((act) => act.createdAt)
    let before = newest.get(customer) ?? Math.max(0, ...earlier)
    if (type === 'manual.erased') {
      const sources = await knownOf(environment).sourcesOf([customerId])
      before = Math.max(before, ...(sources.get(customerId) ?? []).map(({ newestAt }) => newestAt))
    }
    const createdAt = Math.max(now, before + 1)
    newest.set(customer, createdAt)
    dated.push(prepareAct(one, createdAt, now))
  }
  return dated
}
