/* Runs one backfill of each environment at a time in the background, and knows those of every instance. */

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { PaymentsApi } from '../payments-api/client.js'
import type { Environment } from '../provider/event.js'
import { type BackfillStep, isStopAsked } from '../store/backfill.js'
import { isStoreBusy } from '../store/engine.js'
import type { Db } from '../store/schema.js'
import { type LedgerDeps, placeNow } from './ledger.js'
import {
  type Backfill,
  type BackfillPlan,
  failed,
  isRunning,
  isSamePlan,
  isWhole,
  lastComplete,
  loadRuns,
  newBackfill,
  readIn,
  recordOf,
  stopped,
  wholePlan,
} from './run.js'
import { walk } from './walk.js'

/** Earlier ones of an environment are forgotten, but never the last complete one. */
const MAX_KEPT = 20
/**
 * One that was broken off longer ago begins again: its lists are old by then, and a record that always fails would keep
 * every later one from reading them. Less than the day between two nights.
 */
const CONTINUED_WITHIN_MS = 12 * 60 * 60 * 1000
const TOO_OLD_TEXT = 'It was broken off more than 12 hours ago: run it again, from the beginning.'
/** How often it is asked whether a backfill has stopped. */
const LOOK_MS = 200
/**
 * How often it is asked whether a scheduled one has ended, and whether another instance wants one to stop; also the wait
 * until it is tried again to save how one ended.
 */
const ASKED_MS = 1_000

/** The writes of what is known of a backfill. */
export interface BackfillWrites {
  save(step: BackfillStep): Promise<void>
  stop(id: string): Promise<void>
  forget(id: string): Promise<void>
}

export interface BackfillsDeps {
  /** Null: `provider.<environment>` is not configured. */
  readonly apiFor: (environment: Environment) => PaymentsApi | null
  readonly db: Db
  /** Gives a walk a connection for all that it reads. */
  readonly readApart: <T>(work: (db: Db) => Promise<T>) => Promise<T>
  readonly ingest: LedgerDeps['ingest']
  /** How far ahead of its receipt an event of an environment may be dated, by any of its endpoints. */
  readonly aheadAtMostMs: (environment: Environment) => number
  readonly writes: BackfillWrites
  /** Works while no other instance runs a backfill of this environment; null: one does. */
  readonly alone: <T>(
    environment: Environment,
    work: (writes: BackfillWrites) => Promise<T>,
  ) => Promise<T | null>
  /** Whether another instance runs one. */
  readonly isTaken: (environment: Environment) => Promise<boolean>
  readonly clock: () => number
  readonly log: Logger
}

/** The backfill of this process in one environment. */
interface Running {
  run: Backfill
  readonly stopping: AbortController
  /** Never rejects. */
  ended: Promise<void>
}

/** Why a walk ends early: somebody asked for it, or the daemon stops, which continues it at its next start. */
const STOPPED = 'stopped'
const STOPPED_TEXT =
  'It was stopped. What it had stored until then stays: `latchkey changes` shows whose access changed.'
const CLOSING = 'closing'

export type Backfills = ReturnType<typeof createBackfills>

export function createBackfills(deps: BackfillsDeps) {
  const { apiFor, db, writes, isTaken, clock, log } = deps
  const running = new Map<Environment, Running>()
  /** Else two that ask at the same moment would both find that none runs. */
  const inTurn = pLimit(1)
  const closing = new AbortController()

  const asItIs = (run: Backfill): Backfill => {
    const own = running.get(run.plan.environment)?.run
    return own?.id === run.id ? own : run
  }
  /** Of every instance, the newest first. */
  const list = async (): Promise<readonly Backfill[]> => (await loadRuns(db)).map(asItIs)
  const find = async (id: string): Promise<Backfill | null> =>
    (await list()).find((run) => run.id === id) ?? null

  function apiOf(environment: Environment): PaymentsApi {
    const api = apiFor(environment)
    if (api !== null) return api
    const message = `The config has no access to the payments service in ${environment}: set provider.${environment}, and restart the daemon.`
    throw new LatchkeyError('payments_api_not_configured', message)
  }

  /** @returns null if another instance runs one */
  async function begin(run: Backfill, before: readonly Backfill[]): Promise<Backfill | null> {
    const own: Running = { run, stopping: new AbortController(), ended: Promise.resolve() }
    const { environment } = run.plan
    running.set(environment, own)
    const begun = Promise.withResolvers<boolean>()
    own.ended = deps
      .alone(environment, async (fenced) => {
        await saveBegin(run, before, fenced)
        begun.resolve(true)
        await runToEnd(own, { ...deps, writes: fenced }, closing.signal)
        return true
      })
      .then((done) => begun.resolve(done === true), begun.reject)
      .finally(() => running.delete(environment))
    return (await begun.promise) ? own.run : null
  }

  /**
   * Starts one, goes on with the same that failed, or joins the same that is running, at whichever instance.
   * @throws {LatchkeyError} `payments_api_not_configured`; `backfill_running`: another one is running
   */
  async function start(plan: BackfillPlan): Promise<Backfill> {
    const { environment } = plan
    apiOf(environment)
    const own = running.get(environment)
    // Its end is shown before it has given back its turn.
    if (own !== undefined && !isRunning(own.run)) await own.ended
    const known = await list()
    const ofEnvironment = known.filter((run) => run.plan.environment === environment)
    const active = running.get(environment)?.run ?? ofEnvironment.find(isRunning)
    if (active !== undefined && (running.has(environment) || (await isTaken(environment)))) {
      if (isSamePlan(active.plan, plan)) return active
      throw busy(environment)
    }
    // It failed, or whoever ran it could not save how it ended.
    const [last] = ofEnvironment
    const isLeft =
      last !== undefined && isLeftIn(last.outcome.state) && isSamePlan(last.plan, plan) && !isTooOld(last)
    const run = isLeft
      ? ({ ...last, outcome: { state: 'running' } } as const)
      : newBackfill({
          ...{ id: `bkf_${randomUUID()}`, number: (known[0]?.number ?? 0) + 1, plan, startedAt: clock() },
          ...(await placeNow(db)),
        })
    const begun = await begin(run, ofEnvironment)
    if (begun === null) throw busy(environment)
    return begun
  }

  /** What it has read may have changed since: a new one reads it again. */
  const isTooOld = ({ startedAt }: Backfill): boolean => clock() - startedAt > CONTINUED_WITHIN_MS

  async function resume(): Promise<void> {
    for (const run of (await list()).filter(isRunning)) {
      const { environment } = run.plan
      if (closing.signal.aborted || running.has(environment) || (await isTaken(environment))) continue
      if (isTooOld(run)) {
        const record = recordOf(stopped(run, TOO_OLD_TEXT, clock()))
        await writes.save({ environment, id: run.id, record, drops: true })
        continue
      }
      log.info({ backfill: run.id, environment }, 'continuing a backfill that was interrupted')
      await begin(run, [run])
    }
  }

  return {
    start: (plan: BackfillPlan) => inTurn(start, plan),
    list,
    find,
    /** Continues what a daemon has left that ended in the middle. */
    resume: () => inTurn(resume),
    /** Resolves once it has stopped, at whichever instance. What it had stored stays; it can't be continued. */
    async stop(id: string): Promise<Backfill | null> {
      const run = await find(id)
      if (run === null || run.outcome.state === 'done' || run.outcome.state === 'stopped') return run
      const { environment } = run.plan
      const own = running.get(environment)
      if (own?.run.id === id) {
        own.stopping.abort(STOPPED)
        await own.ended
      } else if (isRunning(run) && (await isTaken(environment))) {
        await writes.stop(id)
        for (let now: Backfill | null = run; now !== null && isRunning(now); now = await find(id))
          await wait(LOOK_MS)
      } else {
        const record = recordOf(stopped(run, STOPPED_TEXT, clock()))
        await writes.save({ environment, id, record, drops: true })
      }
      return find(id)
    },
    /**
     * Runs one over everything, to its end.
     * @param stopping ends the wait, not the backfill
     * @throws {LatchkeyError} `backfill_failed`, and as `start`
     */
    async complete(environment: Environment, stopping: AbortSignal): Promise<void> {
      const { id } = await inTurn(start, wholePlan(environment))
      for (;;) {
        const run = await find(id)
        if (run === null || run.outcome.state === 'done' || run.outcome.state === 'stopped') return
        if (run.outcome.state === 'failed') throw new LatchkeyError('backfill_failed', run.outcome.reason)
        await wait(ASKED_MS, undefined, { signal: stopping })
      }
    },
    /** Resolves once none runs here; the next start continues. */
    async close(): Promise<void> {
      closing.abort()
      for (const { stopping } of running.values()) stopping.abort(CLOSING)
      await Promise.all([...running.values()].map(({ ended }) => ended))
    },
  }

  /** Saves that it runs. What another had kept goes, and older ones are forgotten. */
  async function saveBegin(run: Backfill, before: readonly Backfill[], { save, forget }: BackfillWrites) {
    const { environment } = run.plan
    const others = before.filter(({ id }) => id !== run.id)
    for (const other of others.filter(({ outcome }) => isLeftIn(outcome.state))) {
      const record = recordOf(stopped(other, 'Another backfill was started.', clock()))
      await save({ environment, id: other.id, record })
    }
    const complete = others.find((one) => one.outcome.state === 'done' && isWhole(one))
    for (const { id } of others.slice(MAX_KEPT - 1)) if (id !== complete?.id) await forget(id)
    await save({
      environment,
      id: run.id,
      record: recordOf(run),
      drops: !before.some(({ id }) => id === run.id),
    })
  }
}

/** Whether it may be continued: a daemon ended without saving how it ended, or it failed. */
function isLeftIn(state: Backfill['outcome']['state']): boolean {
  return state === 'failed' || state === 'running'
}

function busy(environment: Environment): LatchkeyError {
  const message = `Another backfill of ${environment} is running: wait for it, or stop it: Ctrl-C where it runs, or DELETE /backfills/<its id>.`
  return new LatchkeyError('backfill_running', message)
}

/** Runs a backfill from where it is to its saved end, whatever that is. */
async function runToEnd(
  own: Running,
  { apiFor, db, readApart, ingest, aheadAtMostMs, writes, clock, log }: BackfillsDeps,
  closing: AbortSignal,
): Promise<void> {
  const { signal } = own.stopping
  const { id, plan } = own.run
  const { environment } = plan
  const first = { at: clock(), read: readIn(own.run) }

  async function end(run: Backfill, drops: boolean): Promise<void> {
    // Shown once it is saved.
    await saveEnd({ environment, id, record: recordOf(run), drops })
    own.run = run
  }

  /** Again until a store that is full or held takes it: else it would be shown as running for ever. */
  async function saveEnd(step: BackfillStep): Promise<void> {
    // What is left as running is continued by the next daemon.
    for (let isFirst = true; !closing.aborted || isFirst; isFirst = false) {
      try {
        return await writes.save(step)
      } catch (error) {
        const isBusy = isStoreBusy(error)
        if (isFirst || !isBusy) log.error({ err: error }, 'could not save how a backfill ended')
        if (!isBusy) return
      }
      await wait(ASKED_MS, undefined, { signal: closing }).catch(() => {})
    }
  }

  const looking = setInterval(() => void stopIfAsked(), ASKED_MS)
  async function stopIfAsked(): Promise<void> {
    if (await isStopAsked(db, id).catch(() => false)) own.stopping.abort(STOPPED)
  }

  try {
    const api = apiFor(environment)
    if (api === null) throw new LatchkeyError('payments_api_not_configured', NOT_CONFIGURED)
    const result = await readApart((apart) =>
      walk({
        ...{ api, db: apart, ingest, clock, signal },
        aheadAtMostMs: aheadAtMostMs(environment),
        run: () => own.run,
        async save(change, keeps = []) {
          signal.throwIfAborted()
          const run = { ...own.run, ...change }
          const seconds = (clock() - first.at) / 1000
          const done = readIn(run) - first.read
          const next = { ...run, perSecond: seconds > 0 && done > 0 ? done / seconds : null }
          await writes.save({ environment, id, record: recordOf(next), keeps })
          own.run = next
          signal.throwIfAborted()
        },
      }),
    )
    signal.throwIfAborted()
    await end({ ...own.run, outcome: { state: 'done', endedAt: clock(), result } }, true)
    const { sample: _, ...changes } = result.access
    log.info(
      { backfill: id, ...plan, read: readIn(own.run), stored: result.stored, ...changes },
      'backfill done',
    )
  } catch (error) {
    if (signal.reason === CLOSING) return
    if (signal.reason === STOPPED) return end(stopped(own.run, STOPPED_TEXT, clock()), true)
    log.error({ err: error, backfill: id }, 'a backfill failed: the next one with the same plan continues it')
    if (!isLatchkeyError(error, 'writer_ended')) await end(failed(own.run, error, clock()), false)
  } finally {
    clearInterval(looking)
  }
}

const NOT_CONFIGURED =
  'The config no longer has access to the payments service: set provider, and restart the daemon.'

/** When the last complete backfill began; null: there was none. */
export async function lastRanAt(db: Db, environment: Environment): Promise<number | null> {
  return (await lastComplete(db, environment))?.startedAt ?? null
}
