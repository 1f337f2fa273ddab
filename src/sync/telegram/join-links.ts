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
/** A customer asks for another one at any time. */
const INVITE_MS = 86_400_000

export interface Customer {
  readonly environment: Environment
  readonly customerId: string
}

export interface LinkToken {
  readonly token: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

export interface Invite {
  readonly groupId: string
  readonly url: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

/** Null: any product, or group. */
export interface InviteRequest extends Customer {
  readonly productId: string | null
  readonly groupId: string | null
}

export interface JoinLinksDeps {
  readonly db: Kysely<Database>
  readonly writeSync: WriteSync
  /** Links a messenger account to a customer. Under one key this is done once. */
  readonly linkAccount: (
    link: Customer & { readonly accountId: string; readonly key: string; readonly reason: string },
  ) => Promise<unknown>
  /** Asked each time, since a reload may change them. */
  readonly products: () => readonly SyncedProduct[]
  readonly readAccess: (question: Customer & { readonly at: null }) => Promise<AccessAnswer>
  /** Makes a link to the group, by which one asks to join, until then. */
  readonly createInviteLink: (groupId: string, expiresAt: number) => Promise<string>
  /** Epoch milliseconds. */
  readonly clock: () => number
}

export interface JoinLinks {
  /**
   * Makes a token by which one account, once, within an hour, is linked to the customer: also to one who was never
   * seen, and then their first access finds the account.
   */
  newLinkToken(customer: Customer): Promise<LinkToken>
  /** False: the token is of no use, or not any more. */
  linkByToken(token: string, accountId: string): Promise<boolean>
  /**
   * Makes a link for each group that the customer's access opens. One without access would only be declined by it.
   * @throws {LatchkeyError} `group_not_found`: no such group follows access; `not_entitled`; what the platform says
   */
  invite(request: InviteRequest): Promise<readonly Invite[]>
  /** Links the first account that asks by an invite to its customer, unless they have another one. */
  inviteUsed(used: {
    readonly url: string
    readonly accountId: string
    readonly askedAt: number
  }): Promise<void>
  isInviteUsed(url: string): Promise<boolean>
}

/** Links by which customers show which account is theirs: a stolen one could be used in their name, so it is kept as a hash. */
export function createJoinLinks({
  db,
  writeSync,
  linkAccount,
  products,
  readAccess,
  createInviteLink,
  clock,
}: JoinLinksDeps): JoinLinks {
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
    async invite(request) {
      const { environment, customerId } = request
      const offered = groupsFor(products(), request)
      if (offered.length === 0) {
        throw new LatchkeyError('group_not_found', 'No such group follows access in this environment.')
      }
      const { entitlements } = await readAccess({ environment, customerId, at: null })
      const active = entitlements.filter((one) => one.active).map(({ productId }) => productId)
      const open = offered.filter(({ productId }) => active.includes(productId))
      if (open.length === 0) {
        throw new LatchkeyError('not_entitled', 'The customer has no access that opens such a group.')
      }
      const invites: Invite[] = []
      for (const groupId of new Set(open.map((one) => one.groupId))) {
        const expiresAt = clock() + INVITE_MS
        const url = await createInviteLink(groupId, expiresAt)
        const link = { kind: 'invite', environment, customerId, sha256: hashOf(url), expiresAt } as const
        await writeSync('keepJoinLink', link)
        invites.push({ groupId, url, expiresAt })
      }
      return invites
    },
    async inviteUsed({ url, accountId, askedAt }) {
      const sha256 = hashOf(url)
      const customer = await writeSync('takeJoinLink', { kind: 'invite', sha256, accountId, at: askedAt })
      if (customer === null) return
      const { environment, customerId } = customer
      const known = (await loadCustomers(db, environment, [customerId])).get(customerId)
      if (known?.facts.messengerId !== undefined) return
      await linkAccount({ ...customer, accountId, key: sha256, reason: 'invite link' })
    },
    isInviteUsed: (url) => isJoinLinkUsed(db, { kind: 'invite', sha256: hashOf(url) }),
  }
}

function groupsFor(products: readonly SyncedProduct[], { environment, productId, groupId }: InviteRequest) {
  return products
    .filter(({ id }) => productId === null || id === productId)
    .flatMap(({ id, targets }) =>
      targets.flatMap((target) => {
        if (target.adapter !== 'telegram' || target.environment !== environment) return []
        if (groupId !== null && groupId !== target.groupId) return []
        return [{ productId: id, groupId: target.groupId }]
      }),
    )
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
