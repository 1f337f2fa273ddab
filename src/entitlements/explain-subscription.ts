import { changesOf } from './explain-changes.js'
import type { Note } from './explain-note.js'
import { basisOf, createPast, type Past } from './explain-past.js'
import type { NotedEvent } from './explain-payment.js'
import type { Policy } from './policy.js'
import { onlyInforms, rowOf, type SourceEvent } from './reading.js'
import { readSubscription } from './subscription-reading.js'
import { type WalkStep, walkSubscription } from './walk-subscription.js'

/** Notes every event of a subscription, in the order in which they are walked. */
export function noteSubscription(events: readonly SourceEvent[], policy: Policy): NotedEvent[] {
  const whole = readSubscription(events, policy)
  const past = createPast(whole)
  const noted: NotedEvent[] = []
  walkSubscription(whole, policy, (step) => {
    const { event } = step.reading
    const row = rowOf(event, whole.railOf(event), policy)
    noted.push({ event, row, note: noteOf(step, past), changes: changesOf(step) })
    past.see(step)
  })
  return noted
}

/** Says in words of its own what the walk reports; which rule applied is the walk's to know. */
function noteOf(step: WalkStep, past: Past): Note {
  const { before, after } = step
  const paymentId = past.paymentOf(step)
  const by = past.takenBackBy(paymentId)
  const basis = basisOf(before.ground) ?? null
  const kept = { paymentId, basis, since: past.since() }
  switch (step.basis) {
    case 'informs':
      return noteOfInforming(step, past)
    case 'stands':
      return { code: 'paid', paymentId }
    case 'stands_already':
      return { code: 'paid_already', paymentId }
    case 'other_stands':
      return planMove(step, 'plan_change_restored', paymentId) ?? { code: 'waits_for_cycle', ...kept }
    case 'only_succeeded':
      return { code: 'success_only', paymentId }
    case 'paid_before_end':
      return { code: 'paid_before_end', paymentId, endedBy: past.endedBy() }
    case 'is_final':
      return { code: 'final_take_back', paymentId, by }
    case 'falls':
      return { code: 'taken_back', paymentId }
    case 'falls_by_policy':
      return { code: 'failure_ends_all', paymentId, basis }
    case 'other_falls':
      if (after.ground === null) return { code: 'nothing_to_end', paymentId }
      return planMove(step, 'plan_change_undone', paymentId) ?? { code: 'basis_kept', ...kept }
    case 'fell_before':
      return { code: 'taken_back_already', paymentId, by }
    case 'cycle_stands':
      return { code: 'cycle_paid', paymentId }
    case 'cycle_awaits':
      return { code: 'cycle_paid_later', paymentId }
    case 'awaited_stands':
      return { code: 'paid_waiting_cycle', paymentId, cycle: past.awaitedBy(paymentId) }
    case 'cycle_fell':
      return { code: 'cycle_taken_back', paymentId, by }
    case 'cycle_unpaid':
      return { code: 'cycle_without_payment' }
    case 'cycle_ignored':
      return { code: 'cycle_ignored' }
    case 'ends':
      return { code: before.ground === null ? 'subscription_ended_already' : 'subscription_ended' }
    default:
      return step.basis satisfies never
  }
}

/** An event that leaves alone what access depends on may still end the subscription, or change its plan. */
function noteOfInforming(step: WalkStep, past: Past): Note {
  const { event } = step.reading
  const { canceled } = step.after.ends
  if (onlyInforms(event)) return { code: 'payment_unnamed' }
  if (event.type === 'subscription.canceled' && canceled !== null) {
    const { at, eventId } = canceled
    return eventId === event.id ? { code: 'canceled', at } : { code: 'canceled_already', at, by: eventId }
  }
  return noteOfPlan(step, past) ?? { code: 'informed' }
}

function noteOfPlan({ before, after }: WalkStep, past: Past): Note | null {
  const naming = after.plan.namings.at(-1)
  if (after.plan.namings === before.plan.namings || naming === undefined) return null
  const { productId, charge: chargedTo } = naming
  if (productId === before.productId) return null
  if (productId === after.productId) {
    return { code: 'plan_changed', from: before.productId, to: productId, chargedTo }
  }
  return chargedTo === null
    ? null
    : { code: 'plan_change_unpaid', productId, chargedTo, by: past.takenBackBy(chargedTo) }
}

/** Where a payment's event changes the plan, and names no product that counts, it is the charge of a plan change. */
function planMove(
  { before, after }: WalkStep,
  code: 'plan_change_undone' | 'plan_change_restored',
  paymentId: string,
): Note | null {
  const [from, to] = [before.productId, after.productId]
  if (after.plan.namings !== before.plan.namings) return null
  return from === null || to === null || from === to ? null : { code, paymentId, from, to }
}
