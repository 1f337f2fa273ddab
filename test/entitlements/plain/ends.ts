import type { EndReason } from '../../../src/entitlements/model.js'
import { isCycleEvent } from './cycle-payment.js'
import type { SourceEvent } from './rail.js'
import type { PlainSource } from './source.js'

/** An instant at which access ends by the clock, and the event that set it. */
export interface End {
  readonly at: number
  readonly reason: EndReason
  readonly eventId: string
}

/** The ends known of a subscription after `walked`, past ones too. */
export function endsAfter(source: PlainSource, walked: readonly SourceEvent[]): readonly End[] {
  return [cancellation(source, walked), completion(source, walked), lapse(source, walked)].filter(
    (end) => end !== null,
  )
}

/** Rule 5. */
function cancellation(source: PlainSource, walked: readonly SourceEvent[]): End | null {
  let end: End | null = null
  for (const event of walked) {
    if (event.subject !== 'subscription') continue
    const { expiresAt, createdAt, id: eventId } = event
    if (event.type === 'subscription.canceled') {
      const runsOn = event.cancelAtPeriodEnd === true || source.policy.canceled === 'period_end'
      const at = runsOn && expiresAt !== null && expiresAt > createdAt ? expiresAt : createdAt
      if (end === null || at < end.at) end = { at, reason: 'canceled', eventId }
    } else if (isCycleEvent(event) && end !== null) {
      end = expiresAt === null ? null : { at: expiresAt, reason: 'canceled', eventId }
    }
  }
  return end
}

/** Rule 6. */
function completion(source: PlainSource, walked: readonly SourceEvent[]): End | null {
  if (source.policy.completed === 'keep') return null
  let end: End | null = null
  for (const event of walked) {
    if (!isCycleEvent(event) && event.type !== 'subscription.updated') continue
    if (event.cycles === null) continue
    const { current, total } = event.cycles
    const isOver = current !== null && total !== null && current >= total
    end =
      isOver && event.expiresAt !== null
        ? { at: event.expiresAt, reason: 'completed', eventId: event.id }
        : null
  }
  return end
}

/** Rule 7. */
function lapse(source: PlainSource, walked: readonly SourceEvent[]): End | null {
  const { lapseAfter } = source.policy
  if (lapseAfter === null) return null
  let end: End | null = null
  for (const event of walked) {
    if (event.subject !== 'subscription' || event.expiresAt === null) continue
    end = { at: event.expiresAt + lapseAfter, reason: 'lapsed', eventId: event.id }
  }
  return end
}
