import { isDeepStrictEqual } from 'node:util'
import { foldActs, isInForce } from '../entitlements/by-hand.js'
import type { AccessAnswer, Block } from '../entitlements/model.js'
import { LatchkeyError } from '../errors.js'
import type { ManualAct, Receipt } from '../ingest/delivery.js'
import type { Accounts } from '../provider/accounts.js'
import { NO_DETAILS } from '../provider/customer.js'
import type { ManualEvent } from '../provider/event.js'
import { loadErasure } from '../store/erasures.js'
import { loadManualEvent, loadManualEvents } from '../store/events.js'
import type { Db, PersonKey } from '../store/schema.js'
import { actIdOf, formerActIdOf, newActId } from './act-ids.js'

/** The possible changes by hand. Block and unblock: `productId` null means every product. */
export type Act =
  | { readonly type: 'manual.granted'; readonly productId: string; readonly until: number | null }
  | { readonly type: 'manual.revoked'; readonly productId: string }
  | { readonly type: 'manual.blocked' | 'manual.unblocked'; readonly productId: string | null }
  | { readonly type: 'manual.identity_linked'; readonly accounts: Accounts }

/** Whether the act is refused for an erased customer, since it would identify them again. */
const IDENTIFIES: Readonly<Record<Act['type'], boolean>> = {
  'manual.granted': false,
  'manual.revoked': false,
  'manual.blocked': false,
  'manual.unblocked': false,
  'manual.identity_linked': true,
}

export interface ActRequest extends PersonKey {
  readonly act: Act
  /** The actor: an API key's name, or the system user. */
  readonly actor: string
  readonly reason: string | null
  /** Requests with the same key are one change; null: always a new one. */
  readonly idempotencyKey: string | null
}

/** The change, and what the customer may use afterwards. */
export interface ActResult {
  readonly eventId: string
  readonly access: AccessAnswer
}

/**
 * Resolves once the change is committed, and visible in every answer.
 * @throws {LatchkeyError} `invalid_request` for an end in the past; `grant_not_found`, `block_not_found` if there is
 * none to end; `customer_erased` for linking an account to an erased customer; `idempotency_key_conflict` if the key was used for
 * another change; `not_stored`, `store_unavailable`
 */
export type PerformAct = (request: ActRequest) => Promise<ActResult>

export interface PerformActDeps {
  readonly db: Db
  readonly write: (act: ManualAct) => Promise<Receipt>
  readonly readAccess: (query: PersonKey & { readonly at: null }) => Promise<AccessAnswer>
  readonly clock: () => number
}

export function createPerformAct({ db, write, readAccess, clock }: PerformActDeps): PerformAct {
  /** The event of this act if it is done already, under one of these ids; null if it is not. */
  async function findDone({ environment, undated }: ManualAct, ids: readonly string[]) {
    for (const id of ids) {
      const done = await loadManualEvent(db, environment, id)
      // No key makes an erasure: only its id may be that of a key.
      if (done === null || done.type === 'manual.erased') continue
      const { createdAt: _, ...known } = done
      if (!isDeepStrictEqual(known, { ...undated, id })) throw usedBefore()
      return id
    }
    return null
  }

  return async (request) => {
    const { environment, customerId, actor, reason, idempotencyKey } = request
    const id = idempotencyKey === null ? newActId() : actIdOf(environment, idempotencyKey)
    const undated = undatedAct({ id, customerId, actor, reason, ...request.act })
    const act: ManualAct = { environment, undated }
    const read = () => readAccess({ environment, customerId, at: null })
    const ids = idempotencyKey === null ? [] : [id, formerActIdOf(environment, idempotencyKey)]
    let eventId = await findDone(act, ids)
    if (eventId === null) {
      await refuseAct({ db, readAccess, clock }, request)
      const { disposition } = await write(act)
      // Another request with the same key came first; or something else was imported under this id.
      eventId = disposition === 'duplicate' ? await findDone(act, ids) : id
      if (eventId === null) throw usedBefore()
    }
    return { eventId, access: await read() }
  }
}

/** Refuses what can't be done to this customer now: see `PerformAct`. */
export async function refuseAct(
  { db, readAccess, clock }: Omit<PerformActDeps, 'write'>,
  { environment, customerId, act }: ActRequest,
): Promise<void> {
  refusePastEnd(act, clock())
  if (IDENTIFIES[act.type] && (await loadErasure(db, environment, customerId)) !== null)
    throw new LatchkeyError('customer_erased', ERASED)
  if (act.type === 'manual.revoked')
    refuseUngranted(act.productId, await readAccess({ environment, customerId, at: null }))
  if (act.type === 'manual.unblocked') {
    const acts = await loadManualEvents(db, environment, [customerId])
    refuseUnblocked(act.productId, foldActs(acts.get(customerId)).blocks)
  }
}

const ERASED = 'The customer is erased: nothing is stored about them any more.'

function usedBefore(): LatchkeyError {
  const message = 'This Idempotency-Key was used for a different request: use a new one.'
  return new LatchkeyError('idempotency_key_conflict', message)
}

function refusePastEnd(act: Act, now: number): void {
  if (act.type !== 'manual.granted' || act.until === null || act.until > now) return
  const issues = [{ path: 'until', message: 'is in the past' }]
  throw new LatchkeyError('invalid_request', 'A grant must end in the future.', { issues })
}

function refuseUngranted(productId: string, { entitlements }: AccessAnswer): void {
  const sources = entitlements.find((entitlement) => entitlement.productId === productId)?.sources ?? []
  if (sources.some(({ kind, active }) => kind === 'manual' && active)) return
  throw new LatchkeyError('grant_not_found', 'The customer has no manual grant for this product.')
}

function refuseUnblocked(productId: string | null, blocks: readonly Block[]): void {
  const inForce = blocks.filter(isInForce)
  if (inForce.some((block) => productId === null || block.productId === productId)) return
  const detail =
    inForce.length === 0
      ? 'The customer is not blocked.'
      : 'There is no block on this product alone: lift the block on every product.'
  throw new LatchkeyError('block_not_found', detail)
}

type ActFields = Pick<ManualEvent, 'id' | 'type' | 'customerId' | 'actor' | 'reason'> &
  Partial<Pick<ManualEvent, 'productId' | 'until'> & { readonly accounts: Accounts }>

/** The event of a change by hand, without its time; omitted fields are null. */
export function undatedAct(fields: ActFields): ManualAct['undated'] {
  const { id, type, customerId, actor, reason, productId = null, until = null, accounts = {} } = fields
  return {
    id,
    generation: null,
    apiVersion: null,
    subject: 'manual',
    type,
    customerId,
    productId,
    until,
    customer: { ...NO_DETAILS, ...accounts },
    externalRef: null,
    metadata: {},
    actor,
    reason,
  }
}
