import type { EndReason, HoldReason } from './model.js'

/**
 * What an event was to its source: why it counted, or why it did not. `by`, `since` and the like are ids of
 * events of the same source. `basis` is the payment that access depends on; null: the subscription itself,
 * since no payment of its cycle is known.
 */
export type Note =
  | { readonly code: 'held'; readonly reason: HoldReason }
  /** Neither the policy nor the documents let this event change access. */
  | { readonly code: 'informed' }
  /** It is about a payment, and names none. */
  | { readonly code: 'payment_unnamed' }
  /** The payment counts from here on, and gives the access. */
  | { readonly code: 'paid'; readonly paymentId: string }
  | { readonly code: 'paid_already'; readonly paymentId: string }
  /** It paid, while access depends on something else: it counts once a cycle says that it was paid by it. */
  | {
      readonly code: 'waits_for_cycle'
      readonly paymentId: string
      readonly basis: string | null
      readonly since: string
    }
  /** Success that is no grant: it counts once a cycle says that it was paid by it. */
  | { readonly code: 'success_only'; readonly paymentId: string }
  | { readonly code: 'paid_before_end'; readonly paymentId: string; readonly endedBy: string }
  | { readonly code: 'final_take_back'; readonly paymentId: string; readonly by: string }
  /** Access depended on the payment, and it counts no more. */
  | { readonly code: 'taken_back'; readonly paymentId: string }
  | { readonly code: 'taken_back_already'; readonly paymentId: string; readonly by: string }
  /** Another payment than the one that access depends on is taken back. */
  | {
      readonly code: 'basis_kept'
      readonly paymentId: string
      readonly basis: string | null
      readonly since: string
    }
  | { readonly code: 'nothing_to_end'; readonly paymentId: string }
  /** By policy, any failed payment ends a subscription's access. */
  | { readonly code: 'failure_ends_all'; readonly paymentId: string; readonly basis: string | null }
  | { readonly code: 'cycle_paid'; readonly paymentId: string }
  | { readonly code: 'cycle_paid_later'; readonly paymentId: string }
  /** The payment that an earlier cycle event, `cycle`, was waiting for. */
  | { readonly code: 'paid_waiting_cycle'; readonly paymentId: string; readonly cycle: string }
  | { readonly code: 'cycle_taken_back'; readonly paymentId: string; readonly by: string }
  | { readonly code: 'cycle_without_payment' }
  /** By policy, a cycle without a payment pays nothing. */
  | { readonly code: 'cycle_ignored' }
  | { readonly code: 'subscription_ended' }
  | { readonly code: 'subscription_ended_already' }
  | { readonly code: 'canceled'; readonly at: number }
  | { readonly code: 'canceled_already'; readonly at: number; readonly by: string }
  /** `chargedTo` is null where the change had no charge. */
  | {
      readonly code: 'plan_changed'
      readonly from: string | null
      readonly to: string
      readonly chargedTo: string | null
    }
  /** Its charge stands taken back, so that the plan stays. */
  | {
      readonly code: 'plan_change_unpaid'
      readonly productId: string
      readonly chargedTo: string
      readonly by: string
    }
  /** The charge of the change to `from` is taken back: the plan is `to` again. */
  | {
      readonly code: 'plan_change_undone'
      readonly paymentId: string
      readonly from: string
      readonly to: string
    }
  /** The charge of the change to `to` is good after all. */
  | {
      readonly code: 'plan_change_restored'
      readonly paymentId: string
      readonly from: string
      readonly to: string
    }
  /** By hand, until an instant or, with null, for good. */
  | { readonly code: 'granted'; readonly until: number | null }
  | { readonly code: 'revoked' }
  /** Revoked by hand, while nothing was granted by hand. */
  | { readonly code: 'not_granted' }

export type NoteCode = Note['code']

/** What an event changed, for everybody to see. Instants are epoch milliseconds. */
export type Change =
  | { readonly code: 'access_given'; readonly productId: string }
  | { readonly code: 'access_ended'; readonly productId: string }
  | { readonly code: 'access_moved'; readonly from: string; readonly to: string }
  | { readonly code: 'end_set'; readonly reason: EndReason; readonly at: number }
  | { readonly code: 'end_moved'; readonly reason: EndReason; readonly from: number; readonly at: number }
  | { readonly code: 'end_lifted'; readonly reason: EndReason; readonly from: number }
  | { readonly code: 'past_due' }
  | { readonly code: 'past_due_over' }
  | { readonly code: 'cancellation_announced'; readonly at: number | null }
  | { readonly code: 'cancellation_withdrawn' }

export type ChangeCode = Change['code']
