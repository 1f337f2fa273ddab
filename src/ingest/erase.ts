import { createHash } from 'node:crypto'
import type { Environment } from '../provider/event.js'
import { MANUAL_ID_PREFIX } from '../provider/event-form.js'
import type { ErasureRecord } from '../store/erasures.js'
import type { ManualAct, Receipt } from './delivery.js'
import { undatedAct } from './undated-act.js'

/** The actor of an erasure that nobody gave: it follows the provider's event of that type, if the config says so. */
export const ERASED_AFTER_DELETION = 'customer.deleted'

export interface EraseRequest {
  readonly environment: Environment
  /** Need not be known: deliveries that name them may be still to come. */
  readonly customerId: string
  /** Who does it: an API key's name, or the system user. */
  readonly actor: string
  readonly reason: string | null
}

/**
 * Erases a person: what began before ends, and what is stored tells no more who they are. Resolves once the act is
 * committed and written down beside the database, and, if that takes no longer than it may, finished. For somebody
 * who is erased already it tells how that stands.
 * @throws {LatchkeyError} `not_stored`; `store_unavailable` where something that is stored keeps it from being written
 */
export type Erase = (request: EraseRequest) => Promise<ErasureRecord>

export interface EraseDeps {
  readonly write: (act: ManualAct) => Promise<Receipt>
  readonly findErasure: (environment: Environment, customerId: string) => Promise<ErasureRecord | null>
  /** Resolves once all erasures are finished, or it has been waited for long enough. */
  readonly finish: () => Promise<void>
}

export function createErase({ write, findErasure, finish }: EraseDeps): Erase {
  return async (request) => {
    const { environment, customerId } = request
    const known = await findErasure(environment, customerId)
    if (known?.finishedAt != null) return known
    if (known === null) {
      await write({ environment, undated: erasureEvent({ ...request, eventId: erasureId(request) }) })
    }
    await finish()
    const erased = await findErasure(environment, customerId)
    if (erased === null) throw new Error('an erasure was committed, and is not there')
    return erased
  }
}

/** The same for the same person: two who ask at once ask for one thing. */
function erasureId({ environment, customerId }: EraseRequest): string {
  const hash = createHash('sha256').update(`${environment} erased ${customerId}`).digest('hex')
  return `${MANUAL_ID_PREFIX}${hash.slice(0, 32)}`
}

export function erasureEvent({
  eventId: id,
  customerId,
  actor,
  reason,
}: Pick<EraseRequest, 'customerId' | 'actor' | 'reason'> & {
  readonly eventId: string
}): ManualAct['undated'] {
  return undatedAct({ id, type: 'manual.erased', customerId, actor, reason })
}
