import type { Kysely, Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import { type Environment, NORMALIZER_VERSION } from '../provider/event.js'
import { latestCursor } from '../store/changes.js'
import { newestSeq } from '../store/event-walk.js'
import { isSamePolicy, policyInForce, savePolicy } from '../store/policy.js'
import {
  addJobPart,
  clearJob,
  type JobMeaning,
  type JobPart,
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

/** Of one environment, about whom and what all events are to be asked again. */
export interface ConcernedSets {
  readonly customerIds: Set<string>
  readonly paymentIds: Set<string>
}

/** A job under way. */
export interface Run {
  job: StoredJob
  readonly writes: boolean
  /** Whether an event is done, by its number. */
  isDone(seq: number): boolean
  readonly done: SeqSet
  readonly concerned: Readonly<Record<Environment, ConcernedSets>>
  /** What is not saved of it yet. */
  unsaved: { ahead: number[]; concerned: Record<Environment, ConcernedSets> }
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
    const run = newRun(job, writes, writes && isSame ? interrupted.reached : 0)
    if (interrupted?.isMoving && plan.policy === null && !(writes && isSame)) throw stillMoving()
    if (!run.writes) return run

    const parts = await loadJobParts(trx)
    for (const { concerned } of parts) addConcerned(run.concerned, concerned)
    if (isSame) {
      for (const { ahead } of parts) for (const seq of ahead) run.done.add(seq)
      run.job = { ...interrupted, newest: job.newest }
    } else {
      await clearJob(trx)
      addConcerned(run.unsaved.concerned, listed(run.concerned))
      if (!isSamePolicy(inForce, job.policy)) {
        await savePolicy(trx, job.policy)
        run.job = { ...job, isMoving: true }
      } else run.job = { ...job, isMoving: interrupted?.isMoving ?? false }
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

/** @param begunAt all events up to this number are done */
function newRun(job: StoredJob, writes: boolean, begunAt: number): Run {
  const done = createSeqSet()
  return {
    job,
    writes,
    isDone: (seq) => seq <= begunAt || done.has(seq),
    done,
    concerned: nobody(),
    unsaved: { ahead: [], concerned: nobody() },
  }
}

/** Saves how far a run is, in the transaction that takes it there. */
export async function saveRun(trx: Transaction<Database>, run: Run): Promise<void> {
  if (!run.writes) return
  const ahead = run.unsaved.ahead.filter((seq) => seq > run.job.reached)
  const concerned = listed(run.unsaved.concerned)
  if (ahead.length + Object.keys(concerned).length > 0) await addJobPart(trx, { ahead, concerned })
  await saveJob(trx, run.job)
  run.unsaved = { ahead: [], concerned: nobody() }
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

function nobody(): Record<Environment, ConcernedSets> {
  const none = (): ConcernedSets => ({ customerIds: new Set(), paymentIds: new Set() })
  return { live: none(), sandbox: none() }
}

function addConcerned(to: Readonly<Record<Environment, ConcernedSets>>, told: JobPart['concerned']): void {
  for (const [environment, { customerIds, paymentIds }] of entriesOf(told)) {
    for (const id of customerIds) to[environment].customerIds.add(id)
    for (const id of paymentIds) to[environment].paymentIds.add(id)
  }
}

function listed(sets: Readonly<Record<Environment, ConcernedSets>>): JobPart['concerned'] {
  const some = entriesOf(sets).filter(([, one]) => one.customerIds.size + one.paymentIds.size > 0)
  return Object.fromEntries(
    some.map(([environment, { customerIds, paymentIds }]) => [
      environment,
      { customerIds: [...customerIds], paymentIds: [...paymentIds] },
    ]),
  )
}

function entriesOf<Value>(record: Readonly<Partial<Record<Environment, Value>>>): [Environment, Value][] {
  return Object.entries(record) as [Environment, Value][]
}

/** Notes that all events are to be asked again about somebody, or about a payment. */
export function noteConcerned(
  run: Run,
  environment: Environment,
  kind: keyof ConcernedSets,
  id: string,
): void {
  if (run.concerned[environment][kind].has(id)) return
  run.concerned[environment][kind].add(id)
  run.unsaved.concerned[environment][kind].add(id)
}

/** Notes that an event is done. */
export function noteDone(run: Run, seq: number): void {
  if (run.isDone(seq)) return
  run.done.add(seq)
  // Only what a replay counts must not be done twice.
  if (run.writes && run.job.endpoints !== null) run.unsaved.ahead.push(seq)
}

/** Numbers of events: a bit for each. */
export interface SeqSet {
  has(seq: number): boolean
  add(seq: number): void
}

const BITS = 32
const WORDS_PER_CHUNK = 1_024

export function createSeqSet(): SeqSet {
  const chunks = new Map<number, Uint32Array>()
  const place = (seq: number): [number, number, number] => {
    const word = Math.floor(seq / BITS)
    return [Math.floor(word / WORDS_PER_CHUNK), word % WORDS_PER_CHUNK, 1 << (seq % BITS)]
  }
  return {
    has(seq) {
      const [chunk, word, bit] = place(seq)
      return ((chunks.get(chunk)?.[word] ?? 0) & bit) !== 0
    },
    add(seq) {
      const [chunk, word, bit] = place(seq)
      const words = chunks.get(chunk) ?? new Uint32Array(WORDS_PER_CHUNK)
      words[word] = (words[word] ?? 0) | bit
      chunks.set(chunk, words)
    },
  }
}
