/*
 * Compares what is stored with what the stored events say: a verification, a policy diff, the dry run of a replay.
 * Asking never writes: all of it runs on readers, and takes no lock.
 */

import { setImmediate as turn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { Worker } from 'node:worker_threads'
import { type ErrorCode, LatchkeyError } from '../errors.js'
import { threadFile } from '../package-file.js'
import { accountsIn } from '../provider/facts.js'
import { pipelined } from '../store/bulk.js'
import { inSnapshot, isOfStore, unavailable } from '../store/engine.js'
import { newestSeq } from '../store/event-walk.js'
import type { PostgresOptions } from '../store/postgres/dialect.js'
import { assertNotMoving, NOTHING_READ } from '../store/recompute.js'
import type { Db, PersonKey } from '../store/schema.js'
import { policyInForce } from '../store/settings.js'
import { accessChanges, leadsFrom, namesOf } from './differences.js'
import { nodeName } from './group.js'
import { createPass, PACE, type Pass, type Person, runPass, type Settled, type Work } from './pass.js'
import {
  type AccessDifference,
  type ComparePlan,
  interrupted,
  type OnProgress,
  type ProjectedCustomer,
  type RecomputeReport,
  SAMPLE_SIZE,
  type StateDifference,
  summarise,
} from './run.js'

/** Smaller than what is written in turns: while a snapshot is held, SQLite's log can't begin again. */
const COMPARED = { ...PACE, eventsPerTurn: 200 }

export interface CompareOptions {
  /** Epoch milliseconds, of the process that stores deliveries: access as stored should not be of a later instant. */
  readonly clock: () => number
  readonly onProgress?: OnProgress | undefined
  /** Stops it between two groups. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Compares group by group, in the calling thread. Each group is compared in one snapshot, so that deliveries committed
 * meanwhile are never taken for differences.
 * @param db any connection: its transactions only read, and take no lock
 * @throws {LatchkeyError} `rebuild_interrupted`, `replay_interrupted`; `rebuild_running` if another policy is being put
 * in force; `store_unavailable` if an event can't be read
 */
export async function compareStored(
  db: Db,
  plan: ComparePlan,
  {
    clock,
    onProgress = () => {},
    signal,
    pause = () => turn(),
    pace = COMPARED,
  }: CompareOptions & {
    /**
     * Between two groups, where no snapshot is held.
     * @param arrived how many events were stored between the beginnings of the last two
     */
    readonly pause?: (arrived: number) => Promise<unknown>
    readonly pace?: typeof PACE
  },
): Promise<RecomputeReport> {
  const { scope, endpoints } = plan
  const begun = await inSnapshot(db, async (reader) => {
    if (plan.policy === null) await assertNotMoving(reader)
    return { inForce: await policyInForce(reader), newest: await newestSeq(reader) }
  })
  const job = { scope, endpoints, policy: plan.policy ?? begun.inForce, newest: begun.newest }
  const place = { reached: 0, ahead: [], counts: NOTHING_READ, concerned: [] }
  const pass = createPass(job, place, { writes: false })
  const { report, ...findings } = createFindings(plan, pass)
  let newest = begun.newest
  async function inTurn<T>(turn: (reader: Db, now: number) => Promise<T>): Promise<T> {
    let arrived = 0
    const answer = await inSnapshot(db, async (reader) => {
      const [inForce, last] = await pipelined([policyInForce(reader), newestSeq(reader)])
      arrived = last - newest
      newest = last
      if (plan.policy === null && !isDeepStrictEqual(inForce, begun.inForce))
        throw new LatchkeyError('rebuild_running', POLICY_CHANGED)
      // After the first statement, with which the snapshot begins: what is in it was stored before.
      return turn(reader, clock())
    })
    onProgress(pass.reached(), job.newest)
    await pause(arrived)
    if (signal?.aborted) throw interrupted(plan)
    return answer
  }
  const work: Work<Db> = {
    look: inTurn,
    turn: (find, settle) => inTurn(async (reader, now) => settle(reader, await find(reader, now))),
    turnAlone: inTurn,
    ...findings,
  }
  await runPass(pass, work, pace)
  onProgress(job.newest, job.newest)
  return report()
}

const POLICY_CHANGED = 'Another policy was put in force in the meantime: run it again.'

/** Collects what differs. A group that is read again replaces what was found of its customers. */
function createFindings({ mode, sampleSize = SAMPLE_SIZE }: ComparePlan, pass: Pass) {
  const differences = new Map<string, StateDifference>()
  /** By customer's `nodeName`: what would change for them. */
  const access = new Map<string, readonly AccessDifference[]>()
  const customers = new Map<string, ProjectedCustomer>()

  function project(key: PersonKey, next: Partial<ProjectedCustomer>): void {
    if (!pass.isDryReplay) return
    const name = nodeName(key.environment, 'customer', key.customerId)
    customers.set(name, { ...key, activeProducts: null, accounts: null, ...customers.get(name), ...next })
  }

  return {
    settle(_: Db, { group, differences: found, now }: Settled): void {
      if (mode === 'verify') {
        for (const one of namesOf(group, found, now)) differences.set(JSON.stringify(one), one)
      }
      for (const [customerId, { differences: own, after }] of found.access) {
        const { environment } = group
        const name = nodeName(environment, 'customer', customerId)
        const changes = accessChanges(group, own, now)
        if (changes.length > 0) access.set(name, changes)
        else access.delete(name)
        if (changes.length === 0 && !customers.has(name)) continue
        const active = after.filter((one) => one.active)
        project({ environment, customerId }, { activeProducts: active.map(({ productId }) => productId) })
      }
      for (const [name, seq] of leadsFrom(group, found)) pass.lead(name, seq)
    },
    settlePerson(_: Db, { environment, customerId, record }: Person): void {
      project({ environment, customerId }, { accounts: accountsIn(record?.facts ?? {}) })
    },
    report: (): RecomputeReport => ({
      counts: pass.counts(),
      access: summarise([...access.values()].flat(), mode === 'verify' ? SAMPLE_SIZE : sampleSize),
      customers: [...customers.values()],
      differences: { count: differences.size, named: [...differences.values()].slice(0, sampleSize) },
    }),
  }
}

/** Where the database is, as in the config. */
export interface ComparedDatabase {
  readonly file: string
  /** If omitted, the file is the database. */
  readonly postgres?: PostgresOptions | undefined
}

/** What the thread is started with. */
export interface Comparison {
  readonly database: ComparedDatabase
  readonly plan: ComparePlan
}

/** From the thread: it waits between two groups, or it is done. */
export type ComparisonMessage =
  | {
      readonly kind: 'paused'
      readonly reached: number
      readonly total: number
      /** Events that anybody has stored between the beginnings of the last two groups. */
      readonly arrived: number
    }
  | { readonly kind: 'done'; readonly report: RecomputeReport }

/** To the thread: it may go on, or must stop. */
export interface ComparisonTurn {
  readonly now: number
  readonly isStopping: boolean
}

/** A share of the event loop's time: above it, this thread has deliveries or questions to answer. */
export const BUSY = 0.2
/** Events stored in a second: above it, some other process that shares the database, or the machine, has as much to do. */
const BUSY_ELSEWHERE = 100
/** So many times as long as a group took, the comparison then rests: measured, so that deliveries keep their pace. */
export const REST = 6
export const REST_AT_MOST_MS = 1_000

/**
 * Does the same in a thread with its own connection, which ends with it. While this thread is busy, or deliveries come to
 * other processes, it rests after each group: the processors and the disk are shared.
 */
export function startComparison(
  database: ComparedDatabase,
  plan: ComparePlan,
  { clock, onProgress, signal }: CompareOptions,
): Promise<RecomputeReport> {
  const { file, postgres } = database
  const workerData: Comparison = { database: { file, postgres }, plan }
  return new Promise((resolve, reject) => {
    const thread = new Worker(threadFile('recompute/compare-thread'), { workerData })
    let begun = { at: performance.now(), load: performance.eventLoopUtilization() }
    let before = begun
    const goOn = (): void => {
      before = begun
      begun = { at: performance.now(), load: performance.eventLoopUtilization() }
      thread.postMessage({ now: clock(), isStopping: signal?.aborted ?? false } satisfies ComparisonTurn)
    }
    thread.on('message', (message: ComparisonMessage) => {
      if (message.kind === 'done') return resolve(message.report)
      onProgress?.(message.reached, message.total)
      const isBusy =
        performance.eventLoopUtilization(begun.load).utilization >= BUSY ||
        message.arrived > (BUSY_ELSEWHERE * (begun.at - before.at)) / 1_000
      if (!isBusy) return goOn()
      setTimeout(goOn, Math.min(REST_AT_MOST_MS, REST * (performance.now() - begun.at)))
    })
    thread.on('error', (error) => reject(errorFrom(error)))
    thread.on('exit', () => reject(new Error('the comparison ended without a result')))
  })
}

/** An error from another thread has lost its class. */
function errorFrom(error: unknown): unknown {
  if (isOfStore(error)) return unavailable('read', error)
  if (!(error instanceof Error && error.name === 'LatchkeyError' && 'code' in error)) return error
  return new LatchkeyError(error.code as ErrorCode, error.message)
}
