import type { ManualAct, Receipt } from '../ingest/delivery.js'
import { ERASED_AFTER_DELETION } from '../ingest/remarks.js'
import { type ErasureRecord, loadDeletedUnerased, loadErasure } from '../store/erasures.js'
import type { Db } from '../store/schema.js'
import { erasureIdOf, newActId } from './act-ids.js'
import { type ActRequest, undatedAct } from './acts.js'

export type EraseRequest = Omit<ActRequest, 'act' | 'idempotencyKey'>

/**
 * Erases a person: access that began before ends, and stored data no longer identifies them. The customer may be
 * unknown: deliveries that name them may come later. Each person is erased once: a repeated call returns the same
 * erasure.
 * @throws {LatchkeyError} `not_stored`; `store_unavailable` if stored data can't be read or written
 */
export type Erase = (request: EraseRequest) => Promise<ErasureRecord>

export interface EraseDeps {
  readonly db: Db
  readonly write: (act: ManualAct) => Promise<Receipt>
  /** Removes the remaining data of everyone who is erased. */
  readonly finish: () => Promise<void>
}

export function createErase(deps: EraseDeps): Erase {
  const { db, finish } = deps
  return async (request) => {
    const { environment, customerId } = request
    const known = await loadErasure(db, environment, customerId)
    if (known?.finishedAt != null) return known
    if (known === null) await writeErasure(deps, request)
    await finish()
    const erased = await loadErasure(db, environment, customerId)
    if (erased === null) throw new Error('an erasure was committed, but is not stored')
    return erased
  }
}

/** Runs every minute: bounds how many erasures wait in the queue at once. */
const DELETED_AT_ONCE = 100

/** Erases some customers whom the provider deleted; returns their number: 0 once all are. */
export async function eraseDeleted(deps: EraseDeps): Promise<number> {
  const { db, finish } = deps
  const deleted = await loadDeletedUnerased(db, DELETED_AT_ONCE)
  const requests = deleted.map((who) => ({ ...who, actor: ERASED_AFTER_DELETION, reason: null }))
  await Promise.all(requests.map((request) => writeErasure(deps, request)))
  await finish()
  return deleted.length
}

/** Two requests at once are the same change: one person always gets the same id. */
async function writeErasure({ db, write }: EraseDeps, request: EraseRequest): Promise<void> {
  const { environment, customerId, actor, reason } = request
  const under = (id: string): ManualAct => {
    return { environment, undated: undatedAct({ id, type: 'manual.erased', customerId, actor, reason }) }
  }
  const { disposition } = await write(under(erasureIdOf(request)))
  if (disposition !== 'duplicate' || (await loadErasure(db, environment, customerId)) !== null) return
  // Something else was imported under this id: it must keep nobody from being erased.
  await write(under(newActId()))
}
