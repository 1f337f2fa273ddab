import type { Kysely, Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/environments.js'
import { isSamePolicy, policyInForce } from '../store/policy.js'
import {
  clearRebuild,
  loadRebuildProgress,
  type RebuildProgress,
  saveRebuildProgress,
} from '../store/rebuild-progress.js'
import type { Database } from '../store/schema.js'
import { WALK_START, type WalkPlace } from '../store/source-walk.js'
import { countSources } from '../store/stored-sources.js'
import {
  createDifferenceCounter,
  type DifferenceCounter,
  type DifferenceSummary,
} from './access-difference.js'
import { eachCustomers } from './each-customer.js'
import { type FoldingPace, foldMarked, foldNext } from './fold-beside.js'
import { refreshAllDue } from './refresh-due.js'
import { rewriteAccess } from './rewrite-access.js'
import { swapRebuilt } from './swap-rebuilt.js'
import { neverStopping, type WorkOptions } from './work-options.js'

/** Some milliseconds at a time, as a batch of deliveries takes; and a second's work to do again after a kill. */
const PACE: FoldingPace = { eventsAtOnce: 1_000, sourcesPerSave: 2_000 }

/** More than the batches touch that are taken in meanwhile: so there are fewer each time. */
const MARKS_AT_ONCE = 1_000

/** What was touched meanwhile and may still be folded within the swap. */
const MARKS_LEFT_TO_SWAP = 500

const SAMPLE_SIZE = 10

export interface RebuildDeps {
  readonly db: Kysely<Database>
  readonly clock: () => number
  readonly pace?: FoldingPace
}

/** What a rebuild has changed, in all and in each environment. */
export interface RebuildSummary extends DifferenceSummary {
  readonly byEnvironment: Readonly<Record<Environment, DifferenceSummary>>
}

/**
 * Its progress is told in sources, by a count of those that stand.
 * @throws {LatchkeyError} `rebuild_interrupted`
 */
export type Rebuild = (policy: Policy, options?: WorkOptions) => Promise<RebuildSummary>

/**
 * Folds every source from nothing but the stored events under a policy, beside the live state, and puts the
 * result in its place in one step: then that policy is the one in force. Deliveries go on being taken in, under
 * the policy before; what they touch is folded again. Only what really differs is written. Under the policy in
 * force already, that is whatever has come to stand otherwise than the events say.
 */
export function createRebuild({ db, clock, pace = PACE }: RebuildDeps): Rebuild {
  return async (policy, { onProgress = () => {}, isStopping = neverStopping } = {}) => {
    const goOn = async (): Promise<void> => {
      if (await isStopping())
        throw new LatchkeyError('rebuild_interrupted', 'Stopped: run it again, and it goes on.')
    }
    const isInForce = isSamePolicy(policy, await policyInForce(db))
    const total = await countSources(db)
    let progress = await db.transaction().execute((trx) => begin(trx, policy))
    while (progress.place !== null) {
      onProgress(progress.folded, total)
      await goOn()
      const [from, place]: [RebuildProgress, WalkPlace] = [progress, progress.place]
      progress = await db.transaction().execute((trx) => foldNext(trx, from, place, pace))
    }
    const counter = createRebuildCounter()
    let isSwapped = false
    while (!isSwapped) {
      onProgress(progress.folded, total)
      await goOn()
      isSwapped = await db.transaction().execute(async (trx) => {
        const folded = await foldMarked(trx, policy, MARKS_AT_ONCE)
        if (folded > MARKS_LEFT_TO_SWAP) return false
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
    counter: Pick<DifferenceCounter, 'add'>,
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

function createRebuildCounter(): Pick<DifferenceCounter, 'add'> & { summary(): RebuildSummary } {
  const all = createDifferenceCounter(SAMPLE_SIZE)
  const by = { live: createDifferenceCounter(SAMPLE_SIZE), sandbox: createDifferenceCounter(SAMPLE_SIZE) }
  return {
    add(difference) {
      all.add(difference)
      by[difference.environment].add(difference)
    },
    summary: () => ({
      ...all.summary(),
      byEnvironment: { live: by.live.summary(), sandbox: by.sandbox.summary() },
    }),
  }
}

/** Goes on with what was interrupted, if it was for this policy. */
async function begin(trx: Transaction<Database>, policy: Policy): Promise<RebuildProgress> {
  const interrupted = await loadRebuildProgress(trx)
  if (interrupted !== null && isSamePolicy(interrupted.policy, policy)) return interrupted
  await clearRebuild(trx)
  const progress: RebuildProgress = { policy, place: WALK_START, folded: 0 }
  await saveRebuildProgress(trx, progress)
  return progress
}
