import type { AccessAnswer } from '../entitlements/model.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { Customer, JoinLinks } from './join-links.js'
import type { SyncedProduct } from './sync.js'

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
