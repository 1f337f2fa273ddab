import type { Change, Note } from './explain-note.js'
import { END_REASON_TEXT, HOLD_REASON_TEXT, headingOf, time } from './explain-words.js'
import type { FoldableEvent } from './fold-source.js'
import type { SourceKey } from './model.js'

/** What a support person is told of an event: `Refund of pay_1: pay_2 has paid this cycle since evt_9.` */
export function sentenceOf(
  event: FoldableEvent,
  source: SourceKey | null,
  note: Note,
  changes: readonly Change[],
): string {
  const isTold = note.code === 'informed' && changes.length > 0
  const clause = isTold ? 'it tells how the subscription stands' : clauseOf(note, event)
  return [`${headingOf(event, source)}: ${clause}.`, ...changes.map(changeSentence)].join(' ')
}

function clauseOf(note: Note, { createdAt }: FoldableEvent): string {
  switch (note.code) {
    case 'held':
      return HOLD_REASON_TEXT[note.reason]
    case 'informed':
      return 'for information only, since the policy lets it change nothing'
    case 'payment_unnamed':
      return 'for information only, since it names no payment'
    case 'paid':
      return `${note.paymentId} counts as paid from here on`
    case 'paid_already':
      return `${note.paymentId} counted as paid already`
    case 'waits_for_cycle':
      return `${standing(note)}, and a further payment counts once a renewal says what it paid`
    case 'success_only':
      return 'it counts once the subscription says that a cycle was paid'
    case 'paid_before_end':
      return `${note.paymentId} was first paid before ${note.endedBy} ended the subscription, and does not bring it back`
    case 'final_take_back':
      return `${note.paymentId} was taken back for good by ${note.by}`
    case 'taken_back':
      return `${note.paymentId} counts no more`
    case 'taken_back_already':
      return `${note.paymentId} was taken back by ${note.by} already`
    case 'basis_kept':
      return standing(note)
    case 'nothing_to_end':
      return `access did not depend on ${note.paymentId}`
    case 'failure_ends_all':
      return 'the policy ends a subscription on any failed payment'
    case 'cycle_paid':
      return `${note.paymentId} has paid this cycle`
    case 'cycle_paid_later':
      return `${note.paymentId} pays this cycle, by a later event`
    case 'paid_waiting_cycle':
      return `${note.paymentId} pays the cycle of ${note.cycle}`
    case 'cycle_taken_back':
      return `${note.paymentId} should have paid this cycle, and was taken back by ${note.by}`
    case 'cycle_without_payment':
      return 'the cycle was paid by no payment that is known, so that no refund can end it'
    case 'cycle_ignored':
      return 'no payment of this cycle is known, and the policy asks for one'
    case 'subscription_ended':
      return 'the subscription is over'
    case 'subscription_ended_already':
      return 'the subscription was giving no access any more'
    case 'canceled':
      return note.at === createdAt ? 'it takes effect at once' : `it takes effect at ${time(note.at)}`
    case 'canceled_already':
      return `${note.by} had set the end to ${time(note.at)}, which stands`
    case 'plan_changed': {
      const charge = note.chargedTo === null ? 'without a charge' : `charged to ${note.chargedTo}`
      return `the plan is ${note.to} from here on, ${charge}`
    }
    case 'plan_change_unpaid':
      return `the charge for ${note.productId}, ${note.chargedTo}, was taken back by ${note.by}, so the plan stays`
    case 'plan_change_undone':
      return `it was the charge for ${note.from}, so the plan is ${note.to} again`
    case 'plan_change_restored':
      return `it is the charge for ${note.to}, so the plan is ${note.to} after all`
    case 'granted':
      return note.until === null ? 'for good' : `until ${time(note.until)}`
    case 'revoked':
      return 'what was granted by hand is taken back'
    case 'not_granted':
      return 'nothing was granted by hand at that time'
    default:
      return note satisfies never
  }
}

function standing({ basis, since }: { readonly basis: string | null; readonly since: string }): string {
  return basis === null
    ? `the subscription runs without a known payment since ${since}`
    : `${basis} has paid this cycle since ${since}`
}

function changeSentence(change: Change): string {
  switch (change.code) {
    case 'access_given':
      return `Access to ${change.productId} begins.`
    case 'access_ended':
      return `Access to ${change.productId} ends.`
    case 'access_moved':
      return `Access moves from ${change.from} to ${change.to}.`
    case 'end_set':
      return `It now ends at ${time(change.at)}: ${END_REASON_TEXT[change.reason]}.`
    case 'end_moved':
      return `Its end moves from ${time(change.from)} to ${time(change.at)}: ${END_REASON_TEXT[change.reason]}.`
    case 'end_lifted':
      return `Its end at ${time(change.from)} is lifted.`
    case 'past_due':
      return 'A payment is overdue from here on.'
    case 'past_due_over':
      return 'No payment is overdue any more.'
    case 'cancellation_announced':
      return change.at === null
        ? 'It is to be canceled when the period ends.'
        : `It is to be canceled when the period ends, at ${time(change.at)}.`
    case 'cancellation_withdrawn':
      return 'It is not to be canceled any more.'
    default:
      return change satisfies never
  }
}
