import type { SourceState } from '../entitlements/model.js'
import { givesSameAccess } from '../entitlements/same-access.js'
import type { NormalizedEvent } from '../provider/event.js'
import type { SourceChange } from './fold-sources.js'
import type { CauseOf } from './save-access.js'

/** What may have changed a customer's access, and for which products it would have. */
interface Touch {
  readonly isOf: (productId: string) => boolean
  readonly causedBy: string
}

/**
 * Whose access may have changed with these sources, or by these events alone, and by which event. Most events
 * change none: a payment's second, a renewal's.
 */
export function whoIsTouched(
  changes: readonly SourceChange[],
  events: readonly NormalizedEvent[],
  now: number,
): { customerIds: string[]; causeOf: CauseOf } {
  const byCustomer = new Map<string, Touch[]>()
  const touch = (customerId: string, by: Touch): void => {
    byCustomer.set(customerId, [...(byCustomer.get(customerId) ?? []), by])
  }
  for (const { before, after, causedBy } of changes) {
    if (givesSameAccess(before, after, now)) continue
    for (const state of [before, after]) {
      if (state === null || state.customerId === null) continue
      touch(state.customerId, { isOf: (productId) => gives(state, productId), causedBy })
    }
  }
  for (const event of events) {
    if (event.type !== 'manual.blocked' && event.type !== 'manual.unblocked') continue
    if (event.subject !== 'manual') continue
    const { productId: blocked, id: causedBy } = event
    touch(event.customerId, { isOf: (productId) => blocked === null || blocked === productId, causedBy })
  }
  return {
    customerIds: [...byCustomer.keys()],
    causeOf: (customerId, productId) => {
      const touched = byCustomer.get(customerId) ?? []
      const ofProduct = touched.findLast(({ isOf }) => isOf(productId))
      return { kind: 'event', eventId: (ofProduct ?? touched.at(-1))?.causedBy ?? null }
    },
  }
}

function gives({ intervals }: SourceState, productId: string): boolean {
  return intervals.some((interval) => interval.productId === productId)
}
