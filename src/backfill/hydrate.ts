/* Completes held events: what they wait for is often said by the service's own record of their payment or subscription. */

import type { Logger } from 'pino'
import type { PaymentsApi } from '../payments-api/client.js'
import { isPaymentsApiError } from '../payments-api/failure.js'
import { loadAwaitedRecords, type RecordKey } from '../store/awaited-records.js'
import type { DeliveryInput } from '../store/events.js'
import type { Db } from '../store/schema.js'
import { report } from './report.js'
import { beginReading, deliveriesOf, loadStored } from './stored.js'

/** What an event waits for usually comes within moments, with the next one. */
const WAITS_MS = 60_000
/** A record that has not said it by then will not: the doctor names the events that still wait. */
const GIVEN_UP_MS = 86_400_000

const AT_A_TIME = 100

export interface HydrateDeps {
  readonly db: Db
  /** Of the environments whose service may be asked. Called each time, since a reload may change them. */
  readonly apis: () => readonly Pick<PaymentsApi, 'environment' | 'payments' | 'subscriptions'>[]
  /** Stores events, as all others are stored. */
  readonly write: (event: DeliveryInput) => Promise<unknown>
  /** Remembers for an hour that a record was asked for. */
  readonly noteAsked: (record: RecordKey) => Promise<unknown>
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

type Api = ReturnType<HydrateDeps['apis']>[number]

/** Asks for the record of each event that has waited for a minute, one record at a time. */
export function createHydrate({ db, apis, write, noteAsked, clock, log }: HydrateDeps) {
  /** @returns whether the record told anything */
  async function complete(api: Api, { environment, kind, id }: RecordKey, signal: AbortSignal) {
    const reading = await beginReading(db, environment, 'hydrate', clock())
    const records = kind === 'payment' ? api.payments : api.subscriptions
    const { raw: json } = await records.get(id, { signal })
    const record = kind === 'payment' ? { kind, json, isChargedBack: false } : { kind, json }
    const told = deliveriesOf(report(record, await loadStored(db, environment, [record]), reading), reading)
    for (const event of told) await write(event)
    return told.length > 0
  }

  async function completeAll(api: Api, signal: AbortSignal): Promise<number> {
    const { environment } = api
    let completed = 0
    for (;;) {
      const now = clock()
      const waiting = { after: now - GIVEN_UP_MS, until: now - WAITS_MS }
      const due = await loadAwaitedRecords(db, environment, waiting, now, AT_A_TIME)
      for (const record of due) {
        if (signal.aborted) return completed
        await noteAsked(record)
        try {
          if (await complete(api, record, signal)) completed += 1
        } catch (error) {
          // It may be of another account, or older than what the service keeps.
          if (!isPaymentsApiError(error, 'not_found')) throw error
        }
      }
      if (due.length < AT_A_TIME) return completed
    }
  }

  return async (stopping: AbortSignal): Promise<void> => {
    for (const api of apis()) {
      const count = await completeAll(api, stopping)
      if (count > 0) {
        log.info({ environment: api.environment, count }, 'completed held events from the service’s records')
      }
    }
  }
}
