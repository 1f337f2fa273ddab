import type { Kysely } from 'kysely'
import { outcomeOf } from '../entitlements/disposition.js'
import { foldSource } from '../entitlements/fold-source.js'
import { historyEvent, packHistory } from '../entitlements/history.js'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import type { NextDisposition, NextSource } from '../store/next-state.js'
import type { Database } from '../store/schema.js'
import type { StoredSource } from '../store/sources.js'
import type { StoredSourceEvent } from '../store/stored-sources.js'
import { loadWholeSources, type StandingSource, type WholeSource } from '../store/whole-sources.js'

/** Where folding all stored events anew gives something else than what stands. */
export interface FoldedAnew {
  readonly sources: readonly NextSource[]
  readonly dispositions: readonly NextDisposition[]
}

/** Folds sources from nothing but their stored events, and compares. Changes nothing. */
export async function foldAnew(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
  policy: Policy,
): Promise<FoldedAnew> {
  return foldWhole(await loadWholeSources(db, environment, keys), policy)
}

/**
 * The same of sources that are loaded already.
 * @throws {LatchkeyError} `store_unavailable` where an event of one can't be read
 */
export function foldWhole(whole: readonly WholeSource[], policy: Policy): FoldedAnew {
  const sources: NextSource[] = []
  const dispositions: NextDisposition[] = []
  for (const { key, events, standing, unreadable } of whole) {
    if (unreadable !== null) throw unreadable
    const folded = foldStored(key, events, policy)
    if (!standsAs(standing, folded)) sources.push({ key, folded })
    addChanged(dispositions, key, folded, events, policy)
  }
  return { sources, dispositions }
}

/** Null where no event makes it a source. */
export function foldStored(
  key: SourceKey,
  stored: readonly StoredSourceEvent[],
  policy: Policy,
): StoredSource | null {
  const events = stored.flatMap(({ seq, event }) => historyEvent(seq, event) ?? [])
  if (events.length === 0) return null
  events.sort((a, b) => a.seq - b.seq)
  return { state: foldSource(key, events, policy).state, history: packHistory(events) }
}

/** State and history as text, since text is what is stored: the same events and policy always give the same. */
function standsAs(standing: StandingSource | null, folded: StoredSource | null): boolean {
  if (standing === null || folded === null) return standing === folded
  const { state, history } = folded
  if (standing.customer_id !== state.customerId || standing.newest_at !== state.newestAt) return false
  return standing.state === JSON.stringify(state) && standing.history === history
}

function addChanged(
  dispositions: NextDisposition[],
  source: SourceKey,
  folded: StoredSource | null,
  events: readonly StoredSourceEvent[],
  policy: Policy,
): void {
  // As a map: to look an id up in an object, the engine first keeps the id among its own names.
  const held = new Map(Object.entries(folded?.state.held ?? {}))
  for (const { event, disposition, reason } of events) {
    const outcome = outcomeOf(event, source, held.get(event.id), policy)
    if (outcome.disposition === disposition && outcome.reason === reason) continue
    dispositions.push({ eventId: event.id, source, ...outcome })
  }
}
