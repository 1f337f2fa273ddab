import { createHash, randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Environment } from '../provider/event.js'
import { loadCustomers } from '../store/customers.js'
import { isJoinLinkUsed } from '../store/join-links.js'
import type { Database } from '../store/schema.js'
import type { WriteSync } from '../store/sync-writes.js'

/** Long enough to open a messenger, short enough that a link found later is of no use. */
const LINK_TOKEN_MS = 3_600_000
/** 192 bits: 32 of the 64 characters that Telegram lets a deep link carry. */
const TOKEN_BYTES = 24

export interface Customer {
  readonly environment: Environment
  readonly customerId: string
}

export interface LinkToken {
  readonly token: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

/** Links a messenger account to a customer. Under one key this is done once. */
export type LinkAccount = (
  link: Customer & { readonly accountId: string; readonly key: string; readonly reason: string },
) => Promise<unknown>

export interface JoinLinksDeps {
  readonly db: Kysely<Database>
  readonly writeSync: WriteSync
  readonly linkAccount: LinkAccount
  /** Epoch milliseconds. */
  readonly clock: () => number
}

export interface JoinLinks {
  /**
   * Makes a token by which one account, once, within an hour, is linked to the customer: to one who was never seen
   * too, and then their first access finds the account.
   */
  newLinkToken(customer: Customer): Promise<LinkToken>
  /** False: the token is of no use, or not any more. */
  linkByToken(token: string, accountId: string): Promise<boolean>
  keepInvite(invite: Customer & { readonly url: string; readonly expiresAt: number }): Promise<void>
  /** Links the first account that asks by an invite to its customer, unless they have another one. */
  inviteUsed(used: {
    readonly url: string
    readonly accountId: string
    readonly askedAt: number
  }): Promise<void>
  isInviteUsed(url: string): Promise<boolean>
}

/** Links by which customers show which account is theirs. Whoever has one is taken for the customer: kept as hashes. */
export function createJoinLinks({ db, writeSync, linkAccount, clock }: JoinLinksDeps): JoinLinks {
  async function hasAccount({ environment, customerId }: Customer): Promise<boolean> {
    const known = (await loadCustomers(db, environment, [customerId])).get(customerId)
    return known?.facts.messengerId !== undefined
  }

  return {
    async newLinkToken(customer) {
      const token = randomBytes(TOKEN_BYTES).toString('base64url')
      const expiresAt = clock() + LINK_TOKEN_MS
      await writeSync('keepJoinLink', { kind: 'token', ...customer, sha256: hashOf(token), expiresAt })
      return { token, expiresAt }
    },
    async linkByToken(token, accountId) {
      const sha256 = hashOf(token)
      const customer = await writeSync('takeJoinLink', { kind: 'token', sha256, accountId, at: clock() })
      if (customer === null) return false
      await linkAccount({ ...customer, accountId, key: sha256, reason: 'one-time link' })
      return true
    },
    async keepInvite({ url, ...invite }) {
      await writeSync('keepJoinLink', { kind: 'invite', ...invite, sha256: hashOf(url) })
    },
    async inviteUsed({ url, accountId, askedAt }) {
      const sha256 = hashOf(url)
      const customer = await writeSync('takeJoinLink', { kind: 'invite', sha256, accountId, at: askedAt })
      if (customer === null || (await hasAccount(customer))) return
      await linkAccount({ ...customer, accountId, key: sha256, reason: 'invite link' })
    },
    isInviteUsed: (url) => isJoinLinkUsed(db, { kind: 'invite', sha256: hashOf(url) }),
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
