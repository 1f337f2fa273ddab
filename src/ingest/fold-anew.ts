import type { Kysely } from 'kysely'
import { type Outcome, outcomeOf } from '../entitlements/disposition.js'
import { type FoldedSource, foldSource } from '../entitlements/fold-source.js'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import { sourceKey } from '../store/keys.js'
import type { NextDisposition, NextSource } from '../store/next-state.js'
import type { Database } from '../store/schema.js'
import { loadSources } from '../store/sources.js'
import { loadEventsOfSources, type StoredSourceEvent } from '../store/stored-sources.js'
import { isSourceEvent } from './assign-sources.js'

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
  const standing = await loadSources(db, environment, keys)
  const stored = await loadEventsOfSources(db, environment, keys)
  const sources: NextSource[] = []
  const dispositions: NextDisposition[] = []
  for (const key of keys) {
    const events = stored.get(sourceKey(key)) ?? []
    const folded = foldStored(key, events, policy)
    if (!isSameSource(folded, standing.get(sourceKey(key)) ?? null)) sources.push({ key, folded })
    dispositions.push(...changedDispositions(key, folded, events, policy))
  }
  return { sources, dispositions }
}

/** Null where no event makes it a source. */
export function foldStored(
  key: SourceKey,
  stored: readonly StoredSourceEvent[],
  policy: Policy,
): FoldedSource | null {
  const events = stored.map(({ event }) => event).filter(isSourceEvent)
  return events.length === 0 ? null : foldSource(key, events, policy)
}

/** As text, since text is what is stored: the same events and policy always give the same. */
function isSameSource(a: FoldedSource | null, b: FoldedSource | null): boolean {
  return (
    JSON.stringify(a?.state) === JSON.stringify(b?.state) &&
    JSON.stringify(a?.memory) === JSON.stringify(b?.memory)
  )
}

function changedDispositions(
  source: SourceKey,
  folded: FoldedSource | null,
  events: readonly StoredSourceEvent[],
  policy: Policy,
): NextDisposition[] {
  return events.flatMap(({ event, disposition, reason }) => {
    const outcome: Outcome = outcomeOf(event, source, folded?.state.held[event.id], policy)
    if (outcome.disposition === disposition && outcome.reason === reason) return []
    return [{ eventId: event.id, source, ...outcome }]
  })
}
