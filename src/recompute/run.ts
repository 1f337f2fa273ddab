import type { Kysely, Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import { NORMALIZER_VERSION } from '../provider/event.js'
import { latestCursor } from '../store/changes.js'
import { newestSeq } from '../store/event-walk.js'
import { isSamePolicy, policyInForce, savePolicy } from '../store/policy.js'
import {
  addJobPart,
  type Concern,
  clearJob,
  type JobMeaning,
  loadJob,
  loadJobParts,
  NOTHING_READ,
  type StoredJob,
  saveJob,
} from '../store/recompute-job.js'
import type { Database } from '../store/schema.js'

/** What is worked out again, how, and whether it is written. */
export interface RecomputePlan extends JobMeaning {
  /** Null: the policy in force. `apply` puts another one in force as it begins. */
  readonly policy: Policy | null
  readonly mode: 'compare' | 'apply'
}

/** A job under way. */
export interface Run {
  job: StoredJob
  readonly writes: boolean
  /** All events up to this number were done when it began. */
  readonly begunAt: number
  readonly done: SeqSet
  /** By name, about whom and what all events are to be asked again. */
  readonly concerned: Map<string, Concern>
  /** What is not saved of it yet. */
  unsaved: { readonly ahead: number[]; readonly concerned: Concern[] }
}

/**
 * Begins what a plan says, or goes on with what was interrupted of the same.
 * @throws {LatchkeyError} `rebuild_running`: a policy has been put in force to which not all sources were moved
 */
export function beginRun(db: Kysely<Database>, plan: RecomputePlan): Promise<Run> {
  return db.transaction().execute(async (trx) => {
    const interrupted = await loadJob(trx)
    const inForce = await policyInForce(trx)
    const job = await jobOf(trx, plan, inForce)
    const writes = plan.mode === 'apply'
    const isSame = interrupted !== null && isSameJob(interrupted, job)
    const done = createSeqSet()
    const begunAt = writes && isSame ? interrupted.reached : 0
    const unsaved = { ahead: [], concerned: [] }
    const run: Run = { job, writes, begunAt, done, concerned: new Map(), unsaved }
    if (interrupted?.isMoving && plan.policy === null && !(writes && isSame)) throw stillMoving()
    if (!writes) return run

    const parts = await loadJobParts(trx)
    const concerned = parts.flatMap((part) => part.concerned)
    if (isSame) {
      for (const { ahead } of parts) for (const seq of ahead) done.add(seq)
      for (const one of concerned) run.concerned.set(nameOf(one), one)
      run.job = { ...interrupted, newest: job.newest }
    } else {
      await clearJob(trx)
      for (const one of concerned) noteConcerned(run, one)
      const isMoving = !isSamePolicy(inForce, job.policy)
      if (isMoving) await savePolicy(trx, job.policy)
      run.job = { ...job, isMoving: isMoving || (interrupted?.isMoving ?? false) }
    }
    await saveRun(trx, run)
    return run
  })
}

async function jobOf(
  trx: Transaction<Database>,
  { scope, endpoints, policy }: RecomputePlan,
  inForce: Policy,
): Promise<StoredJob> {
  return {
    scope,
    endpoints,
    policy: policy ?? inForce,
    isMoving: false,
    normalizerVersion: NORMALIZER_VERSION,
    newest: await newestSeq(trx),
    reached: 0,
    counts: NOTHING_READ,
    changesAfter: await latestCursor(trx),
  }
}

/** Saves how far a run is, in the transaction that takes it there. */
export async function saveRun(trx: Transaction<Database>, run: Run): Promise<void> {
  if (!run.writes) return
  const ahead = run.unsaved.ahead.filter((seq) => seq > run.job.reached)
  const { concerned } = run.unsaved
  if (ahead.length + concerned.length > 0) await addJobPart(trx, { ahead, concerned })
  await saveJob(trx, run.job)
  run.unsaved = { ahead: [], concerned: [] }
}

function isSameJob(a: StoredJob, b: StoredJob): boolean {
  return (
    a.normalizerVersion === b.normalizerVersion && isSamePolicy(a.policy, b.policy) && isSameMeaning(a, b)
  )
}

/** Whether two jobs are about the same events, in the same sense. */
export function isSameMeaning(one: JobMeaning, other: JobMeaning): boolean {
  return textOf(one) === textOf(other)
}

function textOf({ scope, endpoints }: JobMeaning): string {
  return JSON.stringify([scope, endpoints ?? {}].map((named) => Object.entries(named).sort()))
}

function stillMoving(): LatchkeyError {
  const message =
    'Not every source has been moved to the policy in force yet: `latchkey policy apply` goes on with that.'
  return new LatchkeyError('rebuild_running', message)
}

function nameOf({ environment, kind, id }: Concern): string {
  return `${environment} ${kind} ${id}`
}

/** Notes that all events are to be asked again about somebody, or about a payment. */
export function noteConcerned(run: Run, concern: Concern): void {
  if (run.concerned.has(nameOf(concern))) return
  run.concerned.set(nameOf(concern), concern)
  run.unsaved.concerned.push(concern)
}

/** Notes that all events have been asked about these. */
export function noteAsked(run: Run, concerns: readonly Concern[]): void {
  for (const concern of concerns) run.concerned.delete(nameOf(concern))
}

export function isDone({ begunAt, done }: Run, seq: number): boolean {
  return seq <= begunAt || done.has(seq)
}

/** Notes that an event is done. */
export function noteDone(run: Run, seq: number): void {
  if (isDone(run, seq)) return
  run.done.add(seq)
  // Only what a replay counts must not be done twice.
  if (run.writes && run.job.endpoints !== null) run.unsaved.ahead.push(seq)
}

/** Numbers of events: a bit for each. */
export interface SeqSet {
  has(seq: number): boolean
  add(seq: number): void
}

const BITS = 8

export function createSeqSet(): SeqSet {
  let bytes = new Uint8Array(1_024)
  return {
    has: (seq) => ((bytes[Math.floor(seq / BITS)] ?? 0) & (1 << (seq % BITS))) !== 0,
    add(seq) {
      const place = Math.floor(seq / BITS)
      if (place >= bytes.length) {
        const longer = new Uint8Array(2 * (place + 1))
        longer.set(bytes)
        bytes = longer
      }
      bytes[place] = (bytes[place] ?? 0) | (1 << (seq % BITS))
    },
  }
}
