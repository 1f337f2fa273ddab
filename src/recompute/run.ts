import { isDeepStrictEqual } from 'node:util'
import { isChange } from '../entitlements/entitlement.js'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { Accounts } from '../provider/accounts.js'
import { type Environment, NORMALIZER_VERSION } from '../provider/event.js'
import { latestCursor, loadChanges, type NewChange } from '../store/changes.js'
import { newestSeq } from '../store/event-walk.js'
import {
  type Concern,
  clearJob,
  type JobScope,
  loadJob,
  loadJobParts,
  NOTHING_READ,
  type ReplayCounts,
  type StoredJob,
  saveJob,
  saveJobPart,
} from '../store/recompute.js'
import type { Db, PersonKey, Tx } from '../store/schema.js'
import { policyInForce, savePolicy } from '../store/settings.js'
import type { TakenIds } from './read-again.js'

/** How work in many transactions reports its progress, and is stopped between two of them. */
export interface WorkOptions {
  /** In any unit; only the ratio counts. */
  readonly onProgress?: (reached: number, total: number) => void
  /**
   * Finished steps stay, and the next work of the same kind continues from there. It also gives other work its turn. The
   * work itself can't, by a turn of the event loop: in a busy thread such a turn comes after hundreds of messages.
   */
  readonly isStopping?: () => boolean | Promise<boolean>
  /** Where several instances take turns: called before another may begin. */
  readonly onDone?: (report: RecomputeReport) => Promise<unknown>
}

/** What is computed again, how, and whether it is written. */
export interface RecomputePlan extends JobScope {
  /** Null: the policy in force. `apply` puts another one in force as it begins. */
  readonly policy: Policy | null
  /** `apply` writes what differs, `compare` reports whose access would change, `verify` lists all differences. */
  readonly mode: 'compare' | 'verify' | 'apply'
  /** The number of examples; all differences are counted. */
  readonly sampleSize?: number
}

/** A running job, from its stored place on. */
function newRun(mode: RecomputePlan['mode'], clock: () => number, job: StoredJob) {
  return {
    mode,
    clock,
    job: { ...job, counts: { ...job.counts } },
    /** By event number, up to the newest one when the run began; 1: done. */
    done: new Uint8Array(job.newest + 1).fill(1, 0, job.reached + 1),
    /** By source number, up to the newest one when the run began; 1: an event has led to it. */
    settled: new Uint8Array(),
    /** By `nodeName`: customers and payments for which all events have to be searched. */
    concerned: new Map<string, Concern>(),
    /** How many parts of the job are saved, and what is not saved yet. */
    parts: 0,
    unsaved: { ahead: [] as number[], concerned: [] as Concern[] },
    /** The position when last saved, and whether anything was written since. */
    savedAt: job.reached,
    hasWritten: false,
    taken: new Map() as TakenIds,
    /** By `nodeName`: events that lead to a source, payment or customer, although nothing stored does. */
    leading: new Map<string, Set<number>>(),
    found: {
      /** For a verification. */
      differences: new Map<string, StateDifference>(),
      /** By customer's `nodeName`: what would change for them. */
      access: new Map<string, readonly AccessDifference[]>(),
      /** For a dry run of a replay. */
      customers: new Map<string, ProjectedCustomer>(),
    },
  }
}
export type Run = ReturnType<typeof newRun>

/**
 * Begins a job, or continues an interrupted one of the same kind.
 * @throws {LatchkeyError} `rebuild_running`: a policy is in force, but not all sources were moved to it yet
 */
export async function beginRun(
  trx: Tx,
  { scope, endpoints, policy: given, mode }: RecomputePlan,
  clock: () => number,
): Promise<Run> {
  const interrupted = await loadJob(trx)
  const inForce = await policyInForce(trx)
  const policy = given ?? inForce
  const newest = await newestSeq(trx)
  const fresh: StoredJob = {
    scope,
    endpoints,
    policy,
    normalizerVersion: NORMALIZER_VERSION,
    isMoving: interrupted?.isMoving || !isDeepStrictEqual(inForce, policy),
    newest,
    reached: 0,
    counts: NOTHING_READ,
    changesAfter: await latestCursor(trx),
  }
  const isSame = (['scope', 'endpoints', 'policy', 'normalizerVersion'] as const).every((name) =>
    isDeepStrictEqual(interrupted?.[name], fresh[name]),
  )
  const continues = mode === 'apply' && interrupted !== null && isSame
  if (interrupted?.isMoving && given === null && !continues) {
    const message =
      'Not every source has been moved to the policy in force yet: `latchkey policy apply` continues that.'
    throw new LatchkeyError('rebuild_running', message)
  }
  const run = newRun(mode, clock, { ...(continues ? interrupted : fresh), newest })
  if (mode !== 'apply') return run
  const parts = await loadJobParts(trx)
  if (continues) {
    run.parts = parts.length
    for (const seq of parts.flatMap(({ ahead }) => ahead)) run.done[seq] = 1
  } else {
    await clearJob(trx)
    if (!isDeepStrictEqual(inForce, policy)) await savePolicy(trx, policy)
  }
  for (const one of parts.flatMap(({ concerned }) => concerned)) noteConcerned(run, one)
  await saveRun(trx, run)
  return run
}

/** Saves the position of a run, in the transaction that reaches it. */
export async function saveRun(trx: Tx, run: Run): Promise<void> {
  if (run.mode !== 'apply') return
  const ahead = run.unsaved.ahead.filter((seq) => seq > run.job.reached)
  const { concerned } = run.unsaved
  if (ahead.length + concerned.length > 0) {
    run.parts += 1
    await saveJobPart(trx, run.parts, { ahead, concerned })
  }
  await saveJob(trx, run.job)
  run.unsaved = { ahead: [], concerned: [] }
  run.savedAt = run.job.reached
  run.hasWritten = false
}

/** Whether a job covers all events, of these environments. */
export function isWhole(scope: JobScope['scope']): scope is readonly Environment[] {
  return Array.isArray(scope)
}

/** Whether events are read again, and nothing is written. */
export function isDryReplay({ job, mode }: Run): boolean {
  return job.endpoints !== null && mode !== 'apply'
}

export function isDone({ done }: Run, seq: number): boolean {
  return done[seq] === 1
}

/** Events that came after the start may be done repeatedly. */
export function noteDone(run: Run, seq: number): void {
  if (isDone(run, seq) || seq > run.job.newest) return
  run.done[seq] = 1
  // Only the counts of a replay must not include an event twice.
  if (run.mode === 'apply' && run.job.endpoints !== null) run.unsaved.ahead.push(seq)
}

/** One name for a source, a payment or a customer of an environment. */
export function nodeName(environment: Environment, kind: string, id: string | null | undefined): string {
  return `${environment} ${kind} ${id}`
}

export function noteConcerned(run: Run, concern: Concern): void {
  const name = nodeName(concern.environment, concern.kind, concern.id)
  if (run.concerned.has(name)) return
  run.concerned.set(name, concern)
  run.unsaved.concerned.push(concern)
}

export function noteLeading(run: Run, name: string, seq: number): void {
  run.leading.set(name, (run.leading.get(name) ?? new Set()).add(seq))
}

export interface RecomputeReport {
  /** For a replay. */
  readonly counts: ReplayCounts
  readonly access: Readonly<Record<Environment | 'all', DifferenceSummary>>
  /** For a dry run of a replay: all customers whose access or accounts would change. */
  readonly customers: readonly ProjectedCustomer[]
  /** For a verification. */
  readonly differences: {
    readonly count: number
    readonly named: readonly StateDifference[]
  }
}

/** Stored data that differs from what the events say. */
export interface StateDifference {
  readonly environment: Environment
  readonly kind: 'source' | 'link' | 'place' | 'disposition' | 'entitlement'
  /** `subscription sub_1`, the payment's id of a `link`, an event's id, or `cus_1 pro_1`. */
  readonly id: string
}

/** How many entitlements differ, with examples. */
export interface DifferenceSummary {
  readonly gains: number
  readonly losses: number
  /** As active or inactive as before, but with another reason or end. */
  readonly otherwise: number
  readonly sample: readonly AccessDifference[]
}

/** One entitlement that would change, or has changed. */
export type AccessDifference = Omit<NewChange, 'at' | 'cause'>

/** A customer after the changes; null: as stored. */
export interface ProjectedCustomer extends PersonKey {
  readonly activeProducts: readonly string[] | null
  readonly accounts: Accounts | null
}

export function summarise(differences: readonly AccessDifference[], sampleSize: number) {
  const summaryOf = (own: readonly AccessDifference[]): DifferenceSummary => {
    const gains = own.filter(({ before, after }) => after.active && !before.active).length
    const losses = own.filter(({ before, after }) => before.active && !after.active).length
    return { gains, losses, otherwise: own.length - gains - losses, sample: own.slice(0, sampleSize) }
  }
  const of = (environment: Environment) =>
    summaryOf(differences.filter((one) => one.environment === environment))
  return { all: summaryOf(differences), live: of('live'), sandbox: of('sandbox') }
}

const CHANGES_AT_ONCE = 1_000

/**
 * The changes of a job since it began, however often it was interrupted: each entitlement before it and now.
 */
export async function changesOf({ changesAfter }: StoredJob, db: Db): Promise<readonly AccessDifference[]> {
  const found = new Map<string, AccessDifference>()
  for (let after: number | undefined = changesAfter; after !== undefined; ) {
    const changes = await loadChanges(db, null, after, CHANGES_AT_ONCE)
    for (const { environment, customerId, productId, cause, ...change } of changes) {
      if (cause.kind !== 'rebuild') continue
      const name = JSON.stringify([environment, customerId, productId])
      const before = found.get(name)?.before ?? change.before
      found.set(name, { environment, customerId, productId, before, after: change.after })
    }
    after = changes.at(-1)?.cursor
  }
  return [...found.values()].filter(({ before, after }) => isChange(before, after))
}
