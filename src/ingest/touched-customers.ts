import type { SourceState } from '../entitlements/model.js'
import type { SourceChange } from './fold-sources.js'
import type { CauseOf } from './save-access.js'

/** Whose access may have changed with these sources, and by which event. */
export function whoIsTouched(changes: readonly SourceChange[]): { customerIds: string[]; causeOf: CauseOf } {
  const byCustomer = new Map<string, { state: SourceState; causedBy: string }[]>()
  for (const { before, after, causedBy } of changes) {
    for (const state of [before, after]) {
      if (state === null || state.customerId === null) continue
      const known = byCustomer.get(state.customerId) ?? []
      byCustomer.set(state.customerId, [...known, { state, causedBy }])
    }
  }
  return {
    customerIds: [...byCustomer.keys()],
    causeOf: (customerId, productId) => {
      const touched = byCustomer.get(customerId) ?? []
      const ofProduct = touched.findLast(({ state }) => gives(state, productId))
      return { kind: 'event', eventId: (ofProduct ?? touched.at(-1))?.causedBy ?? null }
    },
  }
}

function gives({ intervals }: SourceState, productId: string): boolean {
  return intervals.some((interval) => interval.productId === productId)
}
