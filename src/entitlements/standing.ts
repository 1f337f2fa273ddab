import type { Effect, KeptPayment } from './reading.js'

/**
 * How a payment stands, by its own events: `failed` may come good again, `final` never.
 * A payment without a standing has neither paid nor been taken back.
 */
export type Standing = 'good' | 'failed' | 'final'

export function standingAfter(
  before: Standing | undefined,
  event: KeptPayment,
  effect: Effect,
  pays: boolean,
): Standing | undefined {
  if (before === 'final') return before
  if (effect === 'take_back') return event.type === 'payment.failed' ? 'failed' : 'final'
  return pays ? 'good' : before
}

export function isTakenBack(standing: Standing | undefined): boolean {
  return standing === 'failed' || standing === 'final'
}
