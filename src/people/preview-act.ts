import { afterErasures, blocksOn, foldActs, isInForce, manualSource } from '../entitlements/by-hand.js'
import { entitlementsOf, nextChangeAfter } from '../entitlements/entitlement.js'
import { foldSource } from '../entitlements/fold-source.js'
import { historyEvent } from '../entitlements/history.js'
import { isGrantAct, type SourceState } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Accounts } from '../provider/accounts.js'
import type { ManualEvent } from '../provider/event.js'
import { accountsIn } from '../provider/facts.js'
import { loadCustomer } from '../store/customers.js'
import { loadManualEvents } from '../store/events.js'
import type { Db } from '../store/schema.js'
import { policyInForce } from '../store/settings.js'
import { loadSources, loadSourcesOfCustomers, readHistory } from '../store/sources.js'
import { actIdOf, newActId } from './act-ids.js'
import { type ActRequest, type ActResult, type PerformActDeps, refuseAct, undatedAct } from './acts.js'

export interface ActPreview extends ActResult {
  /** The customer's platform accounts afterwards; null: the act links none. */
  readonly accounts: Accounts | null
}

/** What an act would do, from what is stored now. It stores nothing. @throws as `PerformAct` does */
export type PreviewAct = (request: ActRequest) => Promise<ActPreview>

export function createPreviewAct(deps: Omit<PerformActDeps, 'write'>): PreviewAct {
  const { db, readAccess, clock } = deps
  return async (request) => {
    const { environment, customerId, act, actor, reason, idempotencyKey } = request
    await refuseAct(deps, request)
    const eventId = idempotencyKey === null ? newActId() : actIdOf(environment, idempotencyKey)
    const earlier = (await loadManualEvents(db, environment, [customerId])).get(customerId) ?? []
    // As the writer dates it: after every earlier change by hand.
    const createdAt = Math.max(clock(), ...earlier.map((one) => one.createdAt + 1))
    const event = { ...undatedAct({ id: eventId, customerId, actor, reason, ...act }), createdAt }
    const own = (await loadSourcesOfCustomers(db, environment, [customerId])).get(customerId) ?? []
    const { blocks, erasures } = foldActs([...earlier, event])
    const sources = (await withAct(db, request, own, event)).map((one) => afterErasures(one, erasures))
    const instant = { now: createdAt }
    const entitlements = entitlementsOf(sources, blocks, instant)
    const access = {
      ...(await readAccess({ environment, customerId, at: null })),
      entitlements,
      blocked: blocksOn(null, blocks, instant).some(isInForce),
      validUntil: nextChangeAfter(entitlements, createdAt),
    }
    return { eventId, access, accounts: await accountsAfter(db, request) }
  }
}

/** The sources with the grant or revocation in the one that it belongs to. */
async function withAct(
  db: Db,
  { environment }: ActRequest,
  sources: readonly SourceState[],
  event: ManualEvent,
): Promise<readonly SourceState[]> {
  // Numbered as the last to arrive, which it would be.
  const added = historyEvent(Number.MAX_SAFE_INTEGER, event)
  if (!isGrantAct(event) || added === null) return sources
  const key = manualSource(event)
  const stored = (await loadSources(db, environment, [key])).get(sourceKey(key))
  const events = [...(stored === undefined ? [] : readHistory(stored)), added]
  const after = foldSource(key, events, await policyInForce(db))
  return [...sources.filter((one) => sourceKey(one) !== sourceKey(key)), after]
}

async function accountsAfter(db: Db, { environment, customerId, act }: ActRequest): Promise<Accounts | null> {
  if (act.type !== 'manual.identity_linked') return null
  const known = await loadCustomer(db, environment, customerId)
  return { ...accountsIn(known?.facts ?? {}), ...act.accounts }
}
