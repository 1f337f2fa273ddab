import type { Kysely, Transaction } from 'kysely'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { neverStopping, type WorkOptions } from '../ingest/work-options.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/keys.js'
import { clearJob } from '../store/recompute-job.js'
import type { Database } from '../store/schema.js'
import { erasuresMark } from '../store/tellings.js'
import { nothingTold, type Told } from './people.js'
import { changesSince, type RecomputeReport, type StateDifference, summarise } from './report.js'
import { beginRun, isDone, noteAsked, type RecomputePlan, type Run, saveRun } from './run.js'
import { createSettling, type Settling } from './settle.js'
import { findUnlisted, type InTurn, isList, type Pace, sweep, type Walk, walkEvents } from './walk.js'

export interface RecomputeOptions extends WorkOptions {
  /** How many differences of access are named. */
  readonly sampleSize?: number | undefined
  /** How many of the things that are not stored as their events say are named; left out: those are not looked for. */
  readonly namesAtMost?: number | undefined
}

const PACE: Pace = { seeds: 256, eventsPerTurn: 400, eventsPerSave: 20_000 }

const SAMPLE_SIZE = 10
/** Customers and payments about which all events are asked at once: bounds the memory. */
const CONCERNED_AT_ONCE = 10_000
const WRITTEN_AT_ONCE = 200
/** Where few events are meant, a turn ends though it has found hardly any. */
const READS_PER_TURN = 4

/**
 * @throws {LatchkeyError} `rebuild_interrupted`, `replay_interrupted`; `rebuild_running`; `store_unavailable`, at the end,
 * where an event can't be read
 */
export type Recompute = (plan: RecomputePlan, options?: RecomputeOptions) => Promise<RecomputeReport>

export interface RecomputeDeps {
  /** Where nothing is to be written, a connection that only reads will do. */
  readonly db: Kysely<Database>
  readonly clock: () => number
  readonly pace?: Pace
}

/**
 * Works out again what follows from the stored events, group by group, and reports or writes what differs. Each turn is
 * one transaction that leaves the store whole, so deliveries go on being taken in between.
 */
export function createRecompute({ db, clock, pace = PACE }: RecomputeDeps): Recompute {
  return async (
    plan,
    { onProgress = () => {}, isStopping = neverStopping, namesAtMost, sampleSize = SAMPLE_SIZE } = {},
  ) => {
    const run = await beginRun(db, plan)
    const named: StateDifference[] = []
    let different = 0
    const onDifference = (difference: StateDifference): void => {
      different += 1
      if (namesAtMost !== undefined && named.length < namesAtMost) named.push(difference)
    }
    const settling = createSettling(run, clock, namesAtMost === undefined ? undefined : onDifference)
    const once: InTurn = async (work) => {
      const result = await db.transaction().execute(work)
      onProgress(run.job.reached, run.job.newest)
      if (await isStopping()) {
        await db.transaction().execute((trx) => saveRun(trx, run))
        const code = plan.endpoints === null ? 'rebuild_interrupted' : 'replay_interrupted'
        throw new LatchkeyError(code, 'Stopped: run it again, and it goes on.')
      }
      return result
    }
    const inTurn: InTurn = async (work) => {
      const result = await once(work)
      if (!settling.needsUnlisted()) return result
      await settling.noteUnlisted(findUnlisted(run, once))
      return once(work)
    }

    await inTurn(async () => {})
    const walk = walkEvents(run, pace)
    while (run.job.reached < run.job.newest) {
      await inTurn((trx) => takeTurn(trx, run, settling, walk, pace))
    }
    if (isList(run.job.scope)) {
      await sweep(run.job.scope, inTurn, async (trx, environment, seeds) => {
        await settling.settle(trx, environment, seeds)
        await settling.saveIfDue(trx)
      })
    }
    for (const environment of ENVIRONMENTS) await askAgain(run, environment, settling, inTurn)

    const { trial } = settling
    const found = run.writes ? await changesSince(db, run.job.changesAfter) : trial.differences()
    if (run.writes) await db.transaction().execute(clearJob)
    onProgress(run.job.newest, run.job.newest)
    let problem: string | null = null
    try {
      settling.assertReadable()
    } catch (error) {
      // Beside what was named, it is one thing more.
      if (namesAtMost === undefined || !isLatchkeyError(error)) throw error
      problem = error.message
    }
    const { counts } = run.job
    return {
      counts,
      access: summarise(found, sampleSize),
      customers: trial.customersAhead(),
      differences: { count: different, named, problem },
    }
  }
}

async function takeTurn(
  trx: Transaction<Database>,
  run: Run,
  settling: Settling,
  walk: Walk,
  pace: Pace,
): Promise<void> {
  let events = 0
  for (let reads = 0; reads < READS_PER_TURN && events < pace.eventsPerTurn; reads += 1) {
    if (run.job.reached >= run.job.newest) break
    const rows = await walk.read(trx)
    const before = events
    for (const environment of ENVIRONMENTS) {
      const own = rows.filter((row) => row.environment === environment && !isDone(run, row.seq))
      if (own.length > 0) events += await settling.settle(trx, environment, { rows: own })
    }
    if (settling.needsUnlisted()) break
    walk.advance(events - before)
  }
  await settling.saveIfDue(trx, pace.eventsPerSave)
}

/** Asks all events of an environment again about the customers and payments that are concerned. */
async function askAgain(
  run: Run,
  environment: Environment,
  settling: Settling,
  inTurn: InTurn,
): Promise<void> {
  for (;;) {
    const own = [...run.concerned.values()].filter((one) => one.environment === environment)
    const some = own.slice(0, CONCERNED_AT_ONCE)
    if (some.length === 0) return
    const [people, payments] = ['customer', 'payment'].map((kind) =>
      some.filter((one) => one.kind === kind).map(({ id }) => id),
    )
    const told = nothingTold(environment, people ?? [], payments ?? [])
    if (await askAbout(told, settling, inTurn)) noteAsked(run, some)
  }
}

/** @returns whether that holds: false where an erasure has removed something meanwhile */
async function askAbout(told: Told, settling: Settling, inTurn: InTurn): Promise<boolean> {
  const mark = await inTurn(erasuresMark)
  while (await inTurn((trx) => settling.ask(trx, told)));
  for (const some of chunks([...told.people.keys()])) {
    const isWritten = await inTurn(async (trx) => {
      while (await settling.ask(trx, told));
      if ((await erasuresMark(trx)) !== mark) return false
      const people = [...told.people].filter(([id]) => some.has(id))
      await settling.settlePeople(trx, told.environment, new Map(people))
      return true
    })
    if (!isWritten) return false
  }
  for (const some of chunks([...told.links.keys()])) {
    await inTurn((trx) => settling.settle(trx, told.environment, { paymentIds: [...some] }, told.links))
  }
  return true
}

function* chunks(ids: readonly string[]): Generator<ReadonlySet<string>> {
  for (let i = 0; i < ids.length; i += WRITTEN_AT_ONCE) yield new Set(ids.slice(i, i + WRITTEN_AT_ONCE))
}
