import type { AccessInterval, Block, EndReason, SourceState } from '../../src/entitlements/model.js'
import { minute } from './events.js'

interface Told extends Partial<SourceState> {
  /** Access to one product from a minute until another, or for good. */
  readonly gave: readonly (readonly [productId: string, from: number, until: number | null, EndReason?])[]
}

/** A one-time payment by card that gave access as told, unless the fields tell otherwise. */
export function sourceState(id: string, { gave, ...fields }: Told): SourceState {
  const intervals = gave.map(([productId, from, until, reason = 'refunded']): AccessInterval => {
    const eventId = `evt_${id}_${from}`
    if (until === null) return { productId, from: minute(from), until, reason: null, eventId }
    return { productId, from: minute(from), until: minute(until), reason, eventId }
  })
  return {
    kind: 'payment',
    id,
    customerId: 'cus_1',
    rail: 'card',
    intervals,
    pastDueSince: null,
    cancelAtPeriodEnd: false,
    periodEnd: null,
    providerStatus: null,
    newestAt: minute(0),
    cyclesWithoutPayment: 0,
    held: {},
    ...fields,
  }
}

export function block(productId: string | null, from: number, until: number | null = null): Block {
  return { productId, from: minute(from), until: until === null ? null : minute(until) }
}
