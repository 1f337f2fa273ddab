import { createHash, randomBytes } from 'node:crypto'
import { isLatchkeyError, LatchkeyError } from '../../errors.js'
import { loadCustomers } from '../../store/customers.js'
import { loadErasure } from '../../store/erasures.js'
import { isJoinLinkUsed } from '../../store/join-links.js'
import type { PersonKey } from '../../store/schema.js'
import type { SyncedProduct } from '../target.js'
import type { TelegramContext } from './context.js'

/** Long enough to open a messenger, short enough that a link found later is useless. */
const LINK_TOKEN_MS = 3_600_000
/** 192 bits: 32 of the 64 characters that Telegram allows in a deep link. */
const TOKEN_BYTES = 24
/** Customers can ask for a new one at any time. */
const INVITE_MS = 86_400_000

/** The name that administrators see beside the link. Names nobody, because it survives an erasure. */
const LINK_NAME = 'Latchkey'

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
export interface InviteRequest extends PersonKey {
  readonly productId: string | null
  readonly groupId: string | null
}

export type JoinLinks = ReturnType<typeof createJoinLinks>

/** Links that prove which account is a customer's. Only the hash is stored, because a stolen token could be used. */
export function createJoinLinks(context: TelegramContext) {
  const { db, writeSync, clock } = context

  /** No account can be linked to them any more: a link would lead nowhere. */
  async function refuseErased({ environment, customerId }: PersonKey): Promise<void> {
    if ((await loadErasure(db, environment, customerId)) === null) return
    throw new LatchkeyError(
      'customer_erased',
      'The customer is erased: no account can be linked to them any more.',
    )
  }

  /** False: the customer was erased meanwhile. */
  async function linkAccount(link: Parameters<TelegramContext['linkAccount']>[0]): Promise<boolean> {
    try {
      await context.linkAccount(link)
      return true
    } catch (error) {
      if (isLatchkeyError(error, 'customer_erased')) return false
      throw error
    }
  }

  return {
    /**
     * Creates a token that links one account to the customer, once, within an hour. The customer may still be unknown:
     * then their first access finds the account.
     * @throws {LatchkeyError} `customer_erased`
     */
    async newLinkToken(customer: PersonKey): Promise<LinkToken> {
      await refuseErased(customer)
      const token = randomBytes(TOKEN_BYTES).toString('base64url')
      const expiresAt = clock() + LINK_TOKEN_MS
      await writeSync('keepJoinLink', { kind: 'token', ...customer, sha256: hashOf(token), expiresAt })
      return { token, expiresAt }
    },
    /** False: the token is unknown, used or expired, or its customer is erased. */
    async linkByToken(token: string, accountId: string): Promise<boolean> {
      const sha256 = hashOf(token)
      const customer = await writeSync('takeJoinLink', { kind: 'token', sha256, accountId, at: clock() })
      if (customer === null) return false
      return linkAccount({ ...customer, accountId, key: sha256, reason: 'one-time link' })
    },
    /**
     * Creates a link for each group that the customer's access opens. Without access the group would decline them.
     * @throws {LatchkeyError} `group_not_found`: no such group follows access; `not_entitled`; `customer_erased`; the platform's
     * errors
     */
    async invite(request: InviteRequest): Promise<readonly Invite[]> {
      const { environment, customerId } = request
      const offered = groupsFor(context.products(), request)
      if (offered.length === 0) {
        throw new LatchkeyError('group_not_found', 'No such group follows access in this environment.')
      }
      const { entitlements } = await context.readAccess({ environment, customerId, at: null })
      const active = entitlements.filter((one) => one.active).map(({ productId }) => productId)
      const open = offered.filter(({ productId }) => active.includes(productId))
      if (open.length === 0) {
        throw new LatchkeyError('not_entitled', 'The customer has no access to a product with that group.')
      }
      await refuseErased(request)
      const invites: Invite[] = []
      for (const groupId of new Set(open.map((one) => one.groupId))) {
        const expiresAt = clock() + INVITE_MS
        const { invite_link: url } = await context.groups.within(groupId, (api, chatId) =>
          api.createChatInviteLink(chatId, {
            name: LINK_NAME,
            // Telegram can't limit how often such a link is used.
            creates_join_request: true,
            expire_date: Math.floor(expiresAt / 1_000),
          }),
        )
        const link = { kind: 'invite', environment, customerId, sha256: hashOf(url), expiresAt } as const
        await writeSync('keepJoinLink', link)
        invites.push({ groupId, url, expiresAt })
      }
      return invites
    },
    /**
     * Links the first account that asks by an invite to its customer, unless the customer has another one.
     * @param askedAt epoch milliseconds
     */
    async inviteUsed(url: string, accountId: string, askedAt: number): Promise<void> {
      const sha256 = hashOf(url)
      const customer = await writeSync('takeJoinLink', { kind: 'invite', sha256, accountId, at: askedAt })
      if (customer === null) return
      const { environment, customerId } = customer
      const known = (await loadCustomers(db, environment, [customerId])).get(customerId)
      if (known?.facts.messengerId !== undefined) return
      await linkAccount({ ...customer, accountId, key: sha256, reason: 'invite link' })
    },
    isInviteUsed: (url: string) => isJoinLinkUsed(db, { kind: 'invite', sha256: hashOf(url) }),
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
