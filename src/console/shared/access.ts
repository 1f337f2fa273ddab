/* Customers and changes of access in words. */

import { STATUS_TEXT } from '../../entitlements/end-reasons.js'
import type { Schemas } from '../api.js'

type Change = Pick<Schemas['Change'], 'before' | 'after'>

export const statusWords = (status: string): string => STATUS_TEXT[status as Schemas['Status']] ?? status

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

/** What somebody is known by. */
export const DETAILS: Readonly<Record<string, string>> = {
  email: 'Email',
  name: 'Name',
  communityId: 'Discord account',
  communityUsername: 'Discord name',
  messengerId: 'Telegram account',
  messengerUsername: 'Telegram name',
}
