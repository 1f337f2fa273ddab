/* Reports records, as they were listed or asked for one by one, in the order in which they depend on each other. */

import { setTimeout as wait } from 'node:timers/promises'
import { sourceKey } from '../entitlements/source-of.js'
import type { PaymentsApi } from '../payments-api/client.js'
import { isPaymentsApiError } from '../payments-api/failure.js'
import { USUAL_AHEAD_MS } from '../provider/envelope.js'
import type { JsonObject } from '../provider/json.js'
import { BUSY, REST, REST_AT_MOST_MS } from '../recompute/compare.js'
import { loadKeptIds } from '../store/backfill.js'
import { newestDate } from '../store/deliveries.js'
import { newestSeq } from '../store/event-walk.js'
import type { Db } from '../store/schema.js'
import { policyInForce } from '../store/settings.js'
import type { Ledger, ReadEvent } from './ledger.js'
import { type ReadRecord, report, reportedSince, sourcesOf } from './report.js'
import type { Difference, Reading } from './reporter.js'
import type { Outcome } from './run.js'

/** A record that changed while it was read is read again so often. */
const READ_AGAIN_AT_MOST = 3
/** So many records are looked at between two points where other work has its turn. */
export const CHUNK = 20
/** Long enough to see whether this thread has other work. */
const LOOK_MS = 5

export type Kind = Outcome['kind']

/** A record to be reported, and when it was read. */
export interface Unit {
  readonly record: ReadRecord
  readonly reading: Reading
}

export interface ReportsDeps {
  readonly api: PaymentsApi
  readonly db: Db
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly ledger: Ledger
  readonly rest: Rest
  readonly signal: AbortSignal
  readonly aheadAtMostMs: number
  /** What asks for them. */
  readonly by: Reading['by']
  /** The newest stored event when the work began; what is reported with a higher number was missing then. */
  readonly newestBefore: number
}

export function createReports(deps: ReportsDeps) {
  const { api, db, clock, ledger, rest, signal, aheadAtMostMs, by, newestBefore } = deps
  const { environment } = api

  /** Before a record is asked for: what is stored later may be newer than the record. */
  async function takeReading(): Promise<Reading> {
    const policy = await policyInForce(db)
    // The clock of a sandbox may have been moved: its newest events show to where.
    const isMoved = aheadAtMostMs > USUAL_AHEAD_MS
    const at = Math.max(clock(), isMoved ? await newestDate(db, environment) : 0)
    return { environment, at, newestSeq: await newestSeq(db), by, policy, aheadAtMostMs }
  }

  /** Reports in order; what an earlier record had reported is stored before a record that depends on it is looked at. */
  async function reportInOrder(units: readonly Unit[]) {
    const done: (Outcome & { readonly unit: Unit })[] = []
    for (let i = 0; i < units.length; i += CHUNK) {
      const begunAt = performance.now()
      const chunk = units.slice(i, i + CHUNK)
      const records = chunk.map(({ record }) => record)
      let stored = await ledger.load(records)
      let waiting: ReadEvent[] = []
      const touched = new Set<string>()
      const flush = async (): Promise<void> => {
        await ledger.keep(waiting)
        waiting = []
        touched.clear()
      }
      for (const unit of chunk) {
        const { record, reading } = unit
        if (sourcesOf(record, stored.links).some((key) => touched.has(sourceKey(key)))) {
          await flush()
          stored = await ledger.load(records)
        }
        const { events, differences } = report(record, stored, reading)
        if (events.length > 0) {
          waiting.push(...events.map((event) => ({ ...event, receivedAt: clock() })))
          for (const key of sourcesOf(record, stored.links)) touched.add(sourceKey(key))
        }
        const count = events.length + reportedSince(record, stored, newestBefore)
        done.push({ ...named(record), unit, report: { events: count, differences } })
      }
      await flush()
      await rest(performance.now() - begunAt)
    }
    return done
  }

  /** The same; records that changed while they were read are read again. */
  async function reportAll(units: readonly Unit[]): Promise<readonly Outcome[]> {
    const settled: Outcome[] = []
    let left = units
    for (let times = 0; left.length > 0; times += 1) {
      const done = await reportInOrder(left)
      const isAgain = ({ report: told }: Outcome) =>
        times < READ_AGAIN_AT_MOST && told?.differences.some(({ code }) => code === 'read_again') === true
      settled.push(...done.filter((one) => !isAgain(one)).map(({ unit: _, ...outcome }) => outcome))
      left = []
      for (const one of done.filter(isAgain)) {
        const again = await readOne(one.kind, one.id)
        if ('report' in again) settled.push(again)
        else left = [...left, again]
      }
    }
    return settled
  }

  /** Asks for one record; answers with what came of it where there is none to report. */
  async function readOne(kind: Kind, id: string): Promise<Unit | Outcome> {
    const reading = await takeReading()
    try {
      const records = kind === 'payment' ? api.payments : api.subscriptions
      const { raw } = await records.get(id, { signal })
      const [record] = await recordsOf(kind, [raw])
      return record === undefined ? unusable(kind, id) : { record, reading }
    } catch (error) {
      if (isPaymentsApiError(error, 'not_found')) return { kind, id, report: null }
      // It is the service's answer, and about this record.
      const isOdd = isPaymentsApiError(error, 'answer_invalid') && error.issues.length > 0
      if (isOdd || isPaymentsApiError(error, 'answer_too_large')) return unusable(kind, id)
      throw error
    }
  }

  async function recordsOf(kind: Kind, all: readonly JsonObject[]): Promise<readonly ReadRecord[]> {
    if (kind === 'subscription') return all.map((json) => ({ kind, json }))
    const chargedBack = await loadKeptIds(db, environment, 'chargeback', all.map(idOf))
    return all.map((json) => ({ kind, json, isChargedBack: chargedBack.has(idOf(json)) }))
  }

  /** Asks for these one by one, and reports them. */
  async function reportById(kind: Kind, ids: readonly string[]): Promise<readonly Outcome[]> {
    const outcomes: Outcome[] = []
    const units: Unit[] = []
    for (const id of ids) {
      const one = await readOne(kind, id)
      if ('report' in one) outcomes.push(one)
      else units.push(one)
    }
    return [...outcomes, ...(await reportAll(units))]
  }

  return { takeReading, readOne, recordsOf, reportAll, reportById }
}

export type Rest = (workedMs: number) => Promise<void>

/** Rests, longer where this thread has deliveries or questions to answer: they go first. */
export function createRest(signal: AbortSignal): Rest {
  let isBusy = false
  return async (workedMs) => {
    const load = performance.eventLoopUtilization()
    await wait(isBusy ? Math.max(LOOK_MS, Math.min(REST_AT_MOST_MS, REST * workedMs)) : LOOK_MS, undefined, {
      signal,
    })
    isBusy = performance.eventLoopUtilization(load).utilization >= BUSY
  }
}

function named({ kind, json }: ReadRecord): { readonly kind: Kind; readonly id: string } {
  return { kind, id: idOf(json) }
}

export function idOf({ id }: JsonObject): string {
  return typeof id === 'string' ? id : ''
}

export function unusable(kind: Kind, id: string): Outcome {
  const differences: readonly Difference[] = [{ code: 'record_unusable', recordId: id }]
  return { kind, id, report: { events: 0, differences } }
}
