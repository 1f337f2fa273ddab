import type { Kysely, Transaction } from 'kysely'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { type Environment, NORMALIZER_VERSION } from '../provider/event.js'
import { latestCursor } from '../store/changes.js'
import { newestSeq, walkEvents } from '../store/event-walk.js'
import { policyInForce } from '../store/policy.js'
import {
  clearReplayProgress,
  loadReplayProgress,
  type ReplayCounts,
  type ReplayMeaning,
  type ReplayProgress,
  saveReplayProgress,
} from '../store/replay-progress.js'
import { loadUnreadable } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'
import type { DifferenceSummary } from './access-difference.js'
import { type ReplayTerms, replayBatch } from './replay-batch.js'
import { replayEffects } from './replay-effects.js'
import { tellAgain, untiePayments } from './tell-again.js'
import { neverStopping, type WorkOptions } from './work-options.js'

/** Events read in one transaction: bounds the memory, and how long arriving deliveries wait for it. */
const EVENTS_PER_BATCH = 200

const NOTHING_READ: ReplayCounts = {
  read: 0,
  changed: 0,
  recovered: 0,
  quarantined: 0,
  duplicates: 0,
  skipped: 0,
  notReplayable: 0,
  altered: 0,
}

export interface ReplayDeps {
  readonly db: Kysely<Database>
  readonly clock: () => number
  readonly batchSize?: number
}

export interface ReplayOrder extends ReplayMeaning {
  /** From the first event on, though one of the same meaning was interrupted. */
  readonly isAnew: boolean
}

/** What a replay has done, in all of its runs. */
export interface ReplayReport {
  readonly counts: ReplayCounts
  /** How access stands now, against how it stood when the replay began. */
  readonly access: DifferenceSummary
}

/** @throws {LatchkeyError} `replay_interrupted` */
export type Replay = (order: ReplayOrder, options?: WorkOptions) => Promise<ReplayReport>

/**
 * Reads stored events again, as the program of today does, and folds what they touch. Each batch is one transaction
 * that leaves the store whole, so deliveries go on being taken in; only what really differs is written.
 */
export function createReplay({ db, clock, batchSize = EVENTS_PER_BATCH }: ReplayDeps): Replay {
  return async (order, { onProgress = () => {}, isStopping = neverStopping } = {}) => {
    let progress = await db.transaction().execute((trx) => begin(trx, order))
    const goOn = async (): Promise<void> => {
      const { newest, reached, toldUpTo, doubted } = progress
      onProgress(reached + Math.min(toldUpTo, newest), newest * (1 + doubted.length))
      if (await isStopping())
        throw new LatchkeyError('replay_interrupted', 'Stopped: run it again, and it goes on.')
    }
    const commit = async (
      work: (trx: Transaction<Database>, terms: Omit<ReplayTerms, 'environment'>) => Promise<ReplayProgress>,
    ): Promise<void> => {
      progress = await db.transaction().execute(async (trx) => {
        const { endpoints } = order
        const next = await work(trx, { endpoints, policy: await policyInForce(trx), now: clock() })
        await saveReplayProgress(trx, next)
        return next
      })
    }

    const { filter } = order
    const { environment } = filter
    const readAll = (
      seqs: readonly number[],
      reached: number,
      counted = (counts: ReplayCounts) => counts,
    ): Promise<void> =>
      commit(async (trx, terms) => {
        const { counts, isDoubted } = await replayBatch(trx, seqs, { ...terms, environment })
        return readUpTo(progress, reached, counted(counts), { environment, isDoubted })
      })
    const readBatch = async (seqs: readonly number[]): Promise<void> => {
      const reached = seqs.at(-1) ?? progress.reached
      try {
        await readAll(seqs, reached)
      } catch (error) {
        if (!isLatchkeyError(error, 'store_unavailable')) throw error
        // Sources are folded from what all of their events were read as, and of one it can't be read.
        await readAll(await unreadableEvents(db, filter, progress.newest), progress.reached, countedAhead)
        await readAll(seqs, reached)
      }
    }

    await goOn()
    const walk = walkEvents(db, filter, { order: 'oldest first', beyond: progress.reached })
    for await (const { matching, last } of walk) {
      const meant = matching.filter((seq) => seq <= progress.newest)
      for (let i = 0; i < meant.length; i += batchSize) {
        await readBatch(meant.slice(i, i + batchSize))
        await goOn()
      }
      progress = { ...progress, reached: Math.min(last, progress.newest) }
      await goOn()
      if (last >= progress.newest) break
    }
    for (;;) {
      const [doubted] = progress.doubted
      if (doubted === undefined) break
      await commit((trx, terms) => settleDoubts(trx, progress, { ...terms, environment: doubted }, batchSize))
      await goOn()
    }
    return db.transaction().execute(async (trx) => {
      const access = await replayEffects(trx, environment, progress.changesAfter)
      await clearReplayProgress(trx)
      return { counts: progress.counts, access }
    })
  }
}

/** Those that are meant, all of them, and can be read again but not as they stand. */
async function unreadableEvents(
  db: Kysely<Database>,
  filter: ReplayOrder['filter'],
  newest: number,
): Promise<readonly number[]> {
  const found: number[] = []
  for await (const { matching } of walkEvents(db, filter, { order: 'oldest first', beyond: 0 })) {
    found.push(...(await loadUnreadable(db, matching)))
  }
  return found.filter((seq) => seq <= newest)
}

/** Of what is read ahead of its turn: then it is read again, and counted. */
function countedAhead({ changed, recovered }: ReplayCounts): ReplayCounts {
  return { ...NOTHING_READ, changed, recovered }
}

/** Goes on with what was interrupted, if it meant the same to the same program; its doubts are settled in any case. */
async function begin(trx: Transaction<Database>, order: ReplayOrder): Promise<ReplayProgress> {
  const interrupted = await loadReplayProgress(trx)
  const newest = await newestSeq(trx)
  const { filter, endpoints } = order
  const progress: ReplayProgress =
    interrupted !== null && !order.isAnew && isSameReplay(interrupted, order)
      ? // A program from before some of these were counted may have begun it.
        { ...interrupted, newest, counts: { ...NOTHING_READ, ...interrupted.counts } }
      : {
          filter,
          endpoints,
          normalizerVersion: NORMALIZER_VERSION,
          newest,
          reached: 0,
          counts: NOTHING_READ,
          changesAfter: await latestCursor(trx),
          doubted: interrupted?.doubted ?? [],
          toldUpTo: 0,
        }
  await saveReplayProgress(trx, progress)
  return progress
}

function isSameReplay(interrupted: ReplayProgress, order: ReplayOrder): boolean {
  return interrupted.normalizerVersion === NORMALIZER_VERSION && isSameMeaning(interrupted, order)
}

/** Whether two replays are about the same events, in the same sense. */
export function isSameMeaning(one: ReplayMeaning, other: ReplayMeaning): boolean {
  return textOf(one) === textOf(other)
}

function textOf({ filter, endpoints }: ReplayMeaning): string {
  return JSON.stringify([filter, endpoints].map((named) => Object.entries(named).sort()))
}

function readUpTo(
  progress: ReplayProgress,
  reached: number,
  counts: ReplayCounts,
  { environment, isDoubted }: { environment: Environment; isDoubted: boolean },
): ReplayProgress {
  const doubted = new Set(progress.doubted)
  if (isDoubted) doubted.add(environment)
  return { ...progress, reached, counts: added(progress.counts, counts), doubted: [...doubted] }
}

function added(a: ReplayCounts, b: ReplayCounts): ReplayCounts {
  return {
    read: a.read + b.read,
    changed: a.changed + b.changed,
    recovered: a.recovered + b.recovered,
    quarantined: a.quarantined + b.quarantined,
    duplicates: a.duplicates + b.duplicates,
    skipped: a.skipped + b.skipped,
    notReplayable: a.notReplayable + b.notReplayable,
    altered: a.altered + b.altered,
  }
}

/** Takes one step towards knowing again all that was taken back in the first doubted environment. */
async function settleDoubts(
  trx: Transaction<Database>,
  progress: ReplayProgress,
  terms: ReplayTerms,
  batchSize: number,
): Promise<ReplayProgress> {
  const told = await tellAgain(trx, progress.toldUpTo, batchSize, terms)
  if (told !== null) return { ...progress, toldUpTo: told }
  if ((await untiePayments(trx, batchSize, terms)) > 0) return progress
  return { ...progress, doubted: progress.doubted.slice(1), toldUpTo: 0 }
}
