import { setImmediate as turn } from 'node:timers/promises'
import type { Kysely, Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { byEnvironment, deleteNextState, saveNextState } from '../store/next-state.js'
import { isSamePolicy, policyInForce } from '../store/policy.js'
import {
  clearMarks,
  clearRebuild,
  loadMarks,
  loadRebuildProgress,
  type RebuildProgress,
  type StoredSourceKey,
  saveRebuildProgress,
} from '../store/rebuild-progress.js'
import type { Database } from '../store/schema.js'
import { countSources, loadSourceKeys } from '../store/stored-sources.js'
import {
  createDifferenceCounter,
  type DifferenceCounter,
  type DifferenceSummary,
} from './access-difference.js'
import { eachCustomers } from './each-customer.js'
import { foldAnew } from './fold-anew.js'
import { refreshAllDue } from './refresh-due.js'
import { rewriteAccess } from './rewrite-access.js'
import { swapRebuilt } from './swap-rebuilt.js'
import type { WorkOptions } from './work-options.js'

/** Sources folded in one transaction: bounds the memory, and how long arriving deliveries wait for it. */
const SOURCES_PER_BATCH = 100

/** What was touched meanwhile and may still be folded within the swap. */
const MARKS_LEFT_TO_SWAP = 500

const SAMPLE_SIZE = 10

const ENVIRONMENTS: readonly Environment[] = ['live', 'sandbox']

export interface RebuildDeps {
  readonly db: Kysely<Database>
  readonly clock: () => number
  readonly batchSize?: number
}

/**
 * Its progress is told in sources, by a count of those that stand.
 * @throws {LatchkeyError} `rebuild_interrupted`
 */
export type Rebuild = (policy: Policy, options?: WorkOptions) => Promise<DifferenceSummary>

/**
 * Folds every source from nothing but the stored events under a policy, beside the live state, and puts the
 * result in its place in one step: then that policy is the one in force. Deliveries go on being taken in, under
 * the policy before; what they touch is folded again. Only what really differs is written. Under the policy in
 * force already, that is whatever has come to stand otherwise than the events say.
 */
export function createRebuild({ db, clock, batchSize = SOURCES_PER_BATCH }: RebuildDeps): Rebuild {
  return async (policy, { onProgress = () => {}, isStopping = () => false } = {}) => {
    const goOn = async (): Promise<void> => {
      if (await isStopping())
        throw new LatchkeyError('rebuild_interrupted', 'Stopped: run it again, and it goes on.')
      // Requests are answered between two batches.
      await turn()
    }
    const isInForce = isSamePolicy(policy, await policyInForce(db))
    const total = await countSources(db)
    let progress: RebuildProgress | null = await db.transaction().execute((trx) => begin(trx, policy))
    while (progress !== null) {
      onProgress(progress.folded, total)
      await goOn()
      const from: RebuildProgress = progress
      progress = await db.transaction().execute((trx) => foldNext(trx, from, batchSize))
    }
    const counter = createDifferenceCounter(SAMPLE_SIZE)
    let isSwapped = false
    while (!isSwapped) {
      await goOn()
      isSwapped = await db.transaction().execute(async (trx) => {
        const left = (await loadMarks(trx, MARKS_LEFT_TO_SWAP + 1)).length
        await foldMarked(trx, policy, left > MARKS_LEFT_TO_SWAP ? batchSize : left)
        if (left > MARKS_LEFT_TO_SWAP) return false
        await swapRebuilt(trx, policy, clock(), counter)
        return true
      })
    }
    if (isInForce) for (const environment of ENVIRONMENTS) await rewriteAll(environment, counter, goOn)
    return counter.summary()
  }

  /** Mends what is written down of anybody otherwise than the sources say, though these are as they should be. */
  async function rewriteAll(
    environment: Environment,
    counter: DifferenceCounter,
    between: () => Promise<void>,
  ): Promise<void> {
    const rewritten = eachCustomers(
      db,
      environment,
      async (trx, customerIds) => {
        const now = clock()
        await refreshAllDue(trx, now)
        return rewriteAccess(trx, environment, customerIds, now)
      },
      between,
    )
    for await (const difference of rewritten) counter.add(difference)
  }
}

/** Goes on with what was interrupted, if it was for this policy. */
async function begin(trx: Transaction<Database>, policy: Policy): Promise<RebuildProgress> {
  const interrupted = await loadRebuildProgress(trx)
  if (interrupted !== null && isSamePolicy(interrupted.policy, policy)) return interrupted
  await clearRebuild(trx)
  const progress: RebuildProgress = { policy, after: null, folded: 0 }
  await saveRebuildProgress(trx, progress)
  return progress
}

/** Null: every source has been folded. */
async function foldNext(
  trx: Transaction<Database>,
  { policy, after, folded }: RebuildProgress,
  limit: number,
): Promise<RebuildProgress | null> {
  const keys = await loadSourceKeys(trx, after, limit)
  const last = keys.at(-1)
  if (last === undefined) return null
  await foldBeside(trx, keys, policy)
  const progress = { policy, after: last, folded: folded + keys.length }
  await saveRebuildProgress(trx, progress)
  return progress
}

async function foldMarked(trx: Transaction<Database>, policy: Policy, limit: number): Promise<void> {
  await foldBeside(trx, await loadMarks(trx, limit), policy)
}

/** Folds these sources as they stand now: what was found of them before, or marked, is settled with that. */
async function foldBeside(
  trx: Transaction<Database>,
  sources: readonly StoredSourceKey[],
  policy: Policy,
): Promise<void> {
  for (const [environment, keys] of byEnvironment(sources)) {
    await deleteNextState(trx, environment, keys)
    await clearMarks(trx, environment, keys)
    const { sources, dispositions } = await foldAnew(trx, environment, keys, policy)
    await saveNextState(trx, environment, sources, dispositions)
  }
}
