import { accessChanges } from './explain-changes.js'
import type { Change, Note } from './explain-note.js'
import { foldPayment, type PaymentStep } from './fold-payment.js'
import type { FoldableEvent } from './fold-source.js'
import type { Policy } from './policy.js'
import { type KeptPayment, type PolicyRow, rowOf } from './reading.js'

/** One event at its place in the walk: the policy's row that it met, why it counted or not, what it changed. */
export interface NotedEvent {
  readonly event: FoldableEvent
  /** Null: it met no row. */
  readonly row: PolicyRow | null
  readonly note: Note
  readonly changes: readonly Change[]
}

/** Notes every event of a one-time payment, in the order in which they are walked. */
export function notePayment(events: readonly KeptPayment[], policy: Policy): NotedEvent[] {
  const steps: PaymentStep[] = []
  const { rail } = foldPayment(events, policy, (step) => steps.push(step))
  let takenBackBy = ''
  return steps.map((step) => {
    const { event } = step.reading
    const note = noteOf(step, takenBackBy)
    if (step.after.standing !== step.before.standing) takenBackBy = event.id
    const changes = accessChanges(step.before.access, step.after.access)
    return { event, row: rowOf(event, rail, policy), note, changes }
  })
}

function noteOf({ reading, before, after }: PaymentStep, takenBackBy: string): Note {
  const { event, effect } = reading
  const { paymentId } = event
  if (paymentId === null) return { code: 'payment_unnamed' }
  if (effect === 'grant') {
    if (after.standing === 'final') return { code: 'final_take_back', paymentId, by: takenBackBy }
    return { code: before.standing === 'good' ? 'paid_already' : 'paid', paymentId }
  }
  if (effect === 'none') return { code: 'informed' }
  if (before.standing === 'good') return { code: 'taken_back', paymentId }
  if (before.standing === after.standing) return { code: 'taken_back_already', paymentId, by: takenBackBy }
  return { code: 'nothing_to_end', paymentId }
}
