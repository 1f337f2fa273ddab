import type { EndReason } from '../../../src/entitlements/model.js'
import type { SourceEvent } from './rail.js'
import type { PlainSource } from './source.js'
import { accessOf, type PlainState, stateAfter } from './state.js'

/** Why access ends that an event of this type takes back. */
const REASON_OF: Readonly<Record<SourceEvent['type'], EndReason>> = {
  'payment.authorized': 'failed',
  'payment.succeeded': 'failed',
  'payment.completed': 'failed',
  'payment.failed': 'failed',
  'payment.canceled': 'voided',
  'payment.refunded': 'refunded',
  'payment.partially_refunded': 'refunded',
  'payment.chargeback': 'charged_back',
  'payment.settled': 'failed',
  'checkout.initiated': 'failed',
  'checkout.succeeded': 'failed',
  'checkout.failed': 'failed',
  'checkout.canceled': 'voided',
  'subscription.created': 'expired',
  'subscription.renewed': 'expired',
  'subscription.updated': 'expired',
  'subscription.past_due': 'expired',
  'subscription.canceled': 'canceled',
  'subscription.expired': 'expired',
  'payment.reported': 'failed',
  'subscription.reported': 'expired',
}

/** One step within an instant: the clock's own (no event), or an event's. */
interface Step {
  readonly event: SourceEvent | null
  readonly state: PlainState
}

/** The event that began the access to `productId` at `instant`. */
export function beginningOf(source: PlainSource, productId: string, instant: number): string {
  const steps = stepsAt(source, instant)
  const began = steps.findLastIndex(
    ({ state }, index) =>
      accessOf(state, instant) === productId && accessBefore(steps, index, instant) !== productId,
  )
  const event = steps[began]?.event
  if (!event) throw new Error('access began by the clock')
  return event.id
}

/** What ended the access to `productId` at `instant`, and the event that set that end. */
export function endingOf(
  source: PlainSource,
  productId: string,
  instant: number,
): { reason: EndReason; eventId: string } {
  const steps = stepsAt(source, instant)
  const ended = steps.findLastIndex(
    ({ state }, index) =>
      accessOf(state, instant) !== productId &&
      // Only the clock comes before the first step, and access ran until then.
      (index === 0 || accessBefore(steps, index, instant) === productId),
  )
  const step = steps[ended]
  if (!step) throw new Error('access did not end')
  const { event, state } = step
  if (event && accessOf(state, instant) !== null) return { reason: 'moved', eventId: event.id }
  if (event && !state.hasBasis) return { reason: REASON_OF[event.type], eventId: event.id }
  if (!state.end) throw new Error('access ended without a cause')
  return { reason: state.end.reason, eventId: state.end.eventId }
}

/** The clock reaches the instant first; then come the events of that instant, one by one. */
function stepsAt(source: PlainSource, instant: number): readonly Step[] {
  const earlier = source.events.filter(({ createdAt }) => createdAt < instant)
  const now = source.events.filter(({ createdAt }) => createdAt === instant)
  return [null, ...now].map((event, index) => ({
    event,
    state: stateAfter(source, [...earlier, ...now.slice(0, index)]),
  }))
}

function accessBefore(steps: readonly Step[], index: number, instant: number): string | null {
  const before = steps[index - 1]
  return before ? accessOf(before.state, instant) : null
}
