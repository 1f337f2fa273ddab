import type { Kysely, Transaction } from 'kysely'
import {
  insertJoinLink,
  isJoinLinkUsed,
  type JoinLinkOwner,
  type JoinLinkUse,
  type NewJoinLink,
  takeJoinLink,
} from './join-links.js'
import type { Database } from './schema.js'

/** Keeps whom an invite link was made for. */
export function keepInvite(trx: Transaction<Database>, link: NewJoinLink, now: number): Promise<void> {
  return insertJoinLink(trx, 'invites', link, now)
}

/** The customer whom the link was made for, for the first account that asks by it; null for others, and other links. */
export function takeInvite(trx: Transaction<Database>, use: JoinLinkUse): Promise<JoinLinkOwner | null> {
  return takeJoinLink(trx, 'invites', use)
}

export function isInviteUsed(db: Kysely<Database>, sha256: string): Promise<boolean> {
  return isJoinLinkUsed(db, 'invites', sha256)
}
