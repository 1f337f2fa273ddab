/* Completes held events: what they wait for is often said by the service's own record of their payment or subscription. */

import type { Logger } from 'pino'
import type { PaymentsApi } from '../payments-api/client.js'
import type { Environment } from '../provider/event.js'
import { loadAwaitedRecords, type RecordKey } from '../store/awaited-records.js'
import type { Db } from '../store/schema.js'
import { createLedger, type LedgerDeps } from './ledger.js'
import { createReports, createRest } from './reports.js'

/** What an event waits for usually comes within moments, with the next one. */
const WAITS_MS = 60_000
/** A record that has not said it by then will not: the doctor names the events that still wait. */
const GIVEN_UP_MS = 86_400_000

const AT_A_TIME = 100

export interface HydrateDeps {
  readonly db: Db
  /** Of the environments whose service may be asked. */
  readonly apis: readonly PaymentsApi[]
  readonly ingest: LedgerDeps['ingest']
  readonly aheadAtMostMs: (environment: Environment) => number
  /** Remembers for an hour that a record was asked for. */
  readonly noteAsked: (record: RecordKey) => Promise<unknown>
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Asks for the record of each event that has waited for a minute, one record at a time. */
export function createHydrate({ db, apis, ingest, noteAsked, clock, log, ...deps }: HydrateDeps) {
  async function completeAll(api: PaymentsApi, signal: AbortSignal): Promise<number> {
    const { environment } = api
    const aheadAtMostMs = deps.aheadAtMostMs(environment)
    const ledger = createLedger(environment, { db, ingest, aheadAtMostMs, signal })
    const rest = createRest(signal)
    const { reportById } = createReports({
      ...{ api, db, clock, ledger, rest, signal, aheadAtMostMs },
      by: 'hydrate',
      newestBefore: Number.POSITIVE_INFINITY,
    })
    let completed = 0
    for (;;) {
      const now = clock()
      const waiting = { after: now - GIVEN_UP_MS, until: now - WAITS_MS }
      const due = await loadAwaitedRecords(db, environment, waiting, now, AT_A_TIME)
      for (const record of due) {
        signal.throwIfAborted()
        await noteAsked(record)
        const [outcome] = await reportById(record.kind, [record.id])
        // Null: it may be of another account, or older than what the service keeps.
        if ((outcome?.report?.events ?? 0) > 0) completed += 1
      }
      if (due.length < AT_A_TIME) return completed
    }
  }

  return async (stopping: AbortSignal): Promise<void> => {
    for (const api of apis) {
      const { environment } = api
      const count = await completeAll(api, stopping).catch((error: unknown) => {
        if (stopping.aborted) return 0
        throw error
      })
      if (count > 0) log.info({ environment, count }, 'the service’s records say what held events waited for')
    }
  }
}
