import type { SourceState } from '../entitlements/model.js'
import { givesSameAccess } from '../entitlements/same-access.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { ManualEventType } from '../provider/event-types.js'
import type { SourceChange } from './fold-batch.js'
import type { CauseOf } from './save-access.js'

/** What may have changed a customer's access, and for which products it would have. */
interface Touch {
  readonly isOf: (productId: string) => boolean
  readonly causedBy: string
}

/** Customers of one environment. */
export interface TouchedCustomers {
  readonly environment: Environment
  readonly customerIds: readonly string[]
}

export interface Touched {
  /** Whose access may be another: few events make it so, not a payment's second, nor a renewal's. */
  readonly accessOf: readonly string[]
  /** Whose answers may say anything else than before, of their access or of what it rests on. */
  readonly answersOf: readonly string[]
  /** Which event made an entitlement change. */
  readonly causeOf: CauseOf
}

/** What is done by hand to a customer, and belongs to no source of theirs. */
const TOUCHES_ACCESS: readonly ManualEventType[] = ['manual.blocked', 'manual.unblocked', 'manual.erased']

/** Who is touched by changes of these sources, or by these events alone. */
export function whoIsTouched(
  changes: readonly SourceChange[],
  events: readonly NormalizedEvent[],
  now: number,
): Touched {
  const byCustomer = new Map<string, Touch[]>()
  const answersOf = new Set<string>()
  const touch = (customerId: string, by: Touch): void => {
    byCustomer.set(customerId, [...(byCustomer.get(customerId) ?? []), by])
    answersOf.add(customerId)
  }
  for (const { before, after, causedBy } of changes) {
    const isSame = givesSameAccess(before, after, now)
    for (const state of [before, after]) {
      if (state === null || state.customerId === null) continue
      if (isSame) answersOf.add(state.customerId)
      else touch(state.customerId, { isOf: (productId) => gives(state, productId), causedBy })
    }
  }
  for (const event of events) {
    if (event.subject !== 'manual' || !TOUCHES_ACCESS.includes(event.type)) continue
    const { productId: blocked, id: causedBy } = event
    touch(event.customerId, { isOf: (productId) => blocked === null || blocked === productId, causedBy })
  }
  return {
    accessOf: [...byCustomer.keys()],
    answersOf: [...answersOf],
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
