import type { Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { byEnvironment, deleteNextState, saveNextState } from '../store/next-state.js'
import {
  clearMarks,
  loadMarks,
  type RebuildProgress,
  saveRebuildProgress,
} from '../store/rebuild-progress.js'
import type { Database } from '../store/schema.js'
import { loadNextSources, type WalkPlace } from '../store/source-walk.js'
import { foldAnew, foldWhole } from './fold-anew.js'

/** How much is done between two opportunities to go on later, or to be interrupted. */
export interface FoldingPace {
  /** Events read in one transaction: bounds the memory, and how long arriving deliveries wait for it. */
  readonly eventsAtOnce: number
  /** Sources folded before it is written down how far that is, which costs a sync of the disk. */
  readonly sourcesPerSave: number
}

/** Bounds the memory, since all events of so many sources are read together. */
const MARKED_AT_ONCE = 100

/**
 * Folds the next sources beside what stands. Where that is as it should be, nothing is written. Those that are touched
 * meanwhile, before it comes by them or after, are folded again when it has come by all.
 * @param place of `progress`, since there may be none
 */
export async function foldNext(
  trx: Transaction<Database>,
  progress: RebuildProgress,
  place: WalkPlace,
  { eventsAtOnce, sourcesPerSave }: FoldingPace,
): Promise<RebuildProgress> {
  const step = await loadNextSources(trx, place, eventsAtOnce)
  let { folded } = progress
  let isFound = false
  for (const [environment, whole] of step?.sources ?? []) {
    const found = foldWhole(whole, progress.policy)
    await saveNextState(trx, environment, found.sources, found.dispositions)
    folded += whole.length
    isFound ||= found.sources.length + found.dispositions.length > 0
  }
  const next: RebuildProgress = { policy: progress.policy, place: step?.place ?? null, folded }
  const saves = (count: number): number => Math.floor(count / sourcesPerSave)
  if (isFound || next.place === null || saves(folded) > saves(progress.folded)) {
    await saveRebuildProgress(trx, next)
  }
  return next
}

/**
 * Folds sources again that were touched since they were folded, so many at most, and forgets what was found of them.
 * @returns how many there were
 */
export async function foldMarked(
  trx: Transaction<Database>,
  policy: Policy,
  atMost: number,
): Promise<number> {
  let count = 0
  while (count < atMost) {
    const marked = await loadMarks(trx, Math.min(MARKED_AT_ONCE, atMost - count))
    if (marked.length === 0) break
    for (const [environment, keys] of byEnvironment(marked)) {
      await deleteNextState(trx, environment, keys)
      await clearMarks(trx, environment, keys)
      const { sources, dispositions } = await foldAnew(trx, environment, keys, policy)
      await saveNextState(trx, environment, sources, dispositions)
    }
    count += marked.length
  }
  return count
}
