/* Changes of access in words. */

import type { Schemas } from '../api.js'

type Change = Pick<Schemas['Change'], 'before' | 'after'>

const WHY: Readonly<Record<Schemas['Status'], string>> = {
  active: 'has access',
  ending: 'has access until the period ends',
  blocked: 'blocked by hand',
  none: 'no stored event grants it',
  failed: 'the payment failed',
  refunded: 'the payment was refunded',
  charged_back: 'the payment was charged back',
  voided: 'the payment was canceled',
  expired: 'the subscription expired',
  canceled: 'the subscription was canceled',
  completed: 'its fixed term ended',
  lapsed: 'no renewal came in time',
  moved: 'the plan was changed to another product',
  revoked: 'it was revoked by hand, or the customer was erased',
}

/** Why access with this status is as it is. */
export const statusWords = (status: string): string =>
  WHY[status as Schemas['Status']] ?? status.replaceAll('_', ' ')

export const TURNS = ['lost', 'gained', 'changed'] as const

export function turnOf({ before, after }: Change): (typeof TURNS)[number] {
  if (before.active === after.active) return 'changed'
  return after.active ? 'gained' : 'lost'
}

/** Why access was lost, or what is new about it, but for its end. */
export function reasonOf({ before, after }: Change): string {
  if (!after.active) return statusWords(after.status)
  if (!before.active) return before.status === 'blocked' ? 'the block was lifted' : 'access began'
  if (after.until !== before.until)
    return after.until === null ? 'its end was removed' : 'it ends at another time'
  return after.status === 'ending' ? 'it was canceled for the end of the period' : statusWords(after.status)
}
