import type { Transaction } from 'kysely'
import {
  insertJoinLink,
  type JoinLinkOwner,
  type JoinLinkUse,
  type NewJoinLink,
  takeJoinLink,
} from './join-links.js'
import type { Database } from './schema.js'

/** Keeps a one-time token by which an account is linked. */
export function keepLinkToken(trx: Transaction<Database>, link: NewJoinLink, now: number): Promise<void> {
  return insertJoinLink(trx, 'link_tokens', link, now)
}

/** Whom the token links the account to; null: it is of no use, or not any more. */
export function takeLinkToken(trx: Transaction<Database>, use: JoinLinkUse): Promise<JoinLinkOwner | null> {
  return takeJoinLink(trx, 'link_tokens', use)
}
