import { createHash, randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { AccessAnswer } from '../../entitlements/model.js'
import { LatchkeyError } from '../../errors.js'
import type { Environment } from '../../provider/event.js'
import { loadCustomers } from '../../store/customers.js'
import { isJoinLinkUsed } from '../../store/join-links.js'
import type { Database } from '../../store/schema.js'
import type { WriteSync } from '../../store/sync-writes.js'
import type { SyncedProduct } from '../target.js'

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

/** A customer asks for another one at any time. */
const INVITE_MS = 86_400_000

export interface Invite {
  readonly groupId: string
  readonly url: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

/** Null: whichever product, or group. */
export interface InviteRequest extends Customer {
  readonly productId: string | null
  readonly groupId: string | null
}

export interface InvitesDeps {
  readonly products: () => readonly SyncedProduct[]
  readonly readAccess: (
    question: Customer & { readonly environment: Environment; readonly at: null },
  ) => Promise<AccessAnswer>
  /** Makes a link to the group, by which one asks to join, until then. */
  readonly createInviteLink: (groupId: string, expiresAt: number) => Promise<string>
  readonly keepInvite: JoinLinks['keepInvite']
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/**
 * Makes a link for each group that the customer's access opens. One without access would only be declined by it.
 * @throws {LatchkeyError} `group_not_found`: no such group follows access; `not_entitled`; what the platform says
 */
export function createInvites(deps: InvitesDeps): (request: InviteRequest) => Promise<readonly Invite[]> {
  const { products, readAccess, createInviteLink, keepInvite, clock } = deps

  return async (request) => {
    const { environment, customerId } = request
    const offered = groupsFor(products(), request)
    if (offered.length === 0) throw groupNotFound()
    const { entitlements } = await readAccess({ environment, customerId, at: null })
    const active = entitlements.filter((one) => one.active).map(({ productId }) => productId)
    const open = offered.filter(({ productId }) => active.includes(productId))
    if (open.length === 0) throw notEntitled()
    const invites: Invite[] = []
    for (const groupId of new Set(open.map((one) => one.groupId))) {
      const expiresAt = clock() + INVITE_MS
      const url = await createInviteLink(groupId, expiresAt)
      await keepInvite({ environment, customerId, url, expiresAt })
      invites.push({ groupId, url, expiresAt })
    }
    return invites
  }
}

function groupsFor(products: readonly SyncedProduct[], { environment, productId, groupId }: InviteRequest) {
  return products
    .filter(({ id }) => productId === null || id === productId)
    .flatMap(({ id, targets }) => {
      const groupIds = targets.flatMap((target) =>
        target.adapter === 'telegram' && target.environment === environment ? [target.groupId] : [],
      )
      const asked = groupIds.filter((one) => groupId === null || one === groupId)
      return asked.map((one) => ({ productId: id, groupId: one }))
    })
}

function groupNotFound(): LatchkeyError {
  return new LatchkeyError('group_not_found', 'No such group follows access in this environment.')
}

function notEntitled(): LatchkeyError {
  return new LatchkeyError('not_entitled', 'The customer has no access that opens such a group.')
}
