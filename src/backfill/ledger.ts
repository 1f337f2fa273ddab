/* The stored events that reports are decided by, and where reported events go: into the store. */

import { setTimeout as wait } from 'node:timers/promises'
import { isChange } from '../entitlements/entitlement.js'
import type { AccessSnapshot } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import { isLatchkeyError } from '../errors.js'
import type { Receipt } from '../ingest/delivery.js'
import { BACKFILL_ENDPOINT } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { isReportedEventId } from '../provider/ids.js'
import { compareText } from '../provider/order.js'
import { type AccessDifference, type DifferenceSummary, summarise } from '../recompute/run.js'
import { latestCursor, loadChanges } from '../store/changes.js'
import { newestSeq, walkEvents } from '../store/event-walk.js'
import type { DeliveryInput } from '../store/events.js'
import type { Db } from '../store/schema.js'
import { loadLinks, loadSourceRows, readHistory } from '../store/sources.js'
import { paymentIdOf, type ReadRecord, type Stored, sourcesOf } from './report.js'
import type { Reading, ReportedEvent } from './reporter.js'
import type { Backfill, Result } from './run.js'

export interface Ledger {
  /** What is stored, or would be, that the reports of these records depend on. */
  load(records: readonly ReadRecord[]): Promise<Stored>
  /** Every later `load` sees these events. */
  keep(events: readonly ReportedEvent[], reading: Reading): Promise<void>
  result(run: Backfill): Promise<Result>
}

export interface LedgerDeps {
  readonly db: Db
  /** As for a delivery: it resolves once the event is committed. */
  readonly ingest: (delivery: DeliveryInput) => Promise<Receipt>
  readonly signal: AbortSignal
}

/** Deliveries may share the transaction, and wait for it. */
const EVENTS_PER_BATCH = 32
/** A store that can't be written for so long has the backfill fail. */
const TRIES = 60
const TRY_AGAIN_MS = 1_000

const ACCESS_SAMPLE = 100

/** In the order of customers and products, so that a dry run and what it announces show the same examples. */
export function summaryOf(changed: readonly AccessDifference[]): DifferenceSummary {
  const inOrder = [...changed].sort(
    (a, b) => compareText(a.customerId, b.customerId) || compareText(a.productId, b.productId),
  )
  return summarise(inOrder, ACCESS_SAMPLE).all
}

/** Of the store itself. */
export function createLedger(environment: Environment, { db, ingest, signal }: LedgerDeps): Ledger {
  async function ingestUntilStored(delivery: DeliveryInput): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await ingest(delivery)
        return
      } catch (error) {
        if (!isLatchkeyError(error, 'not_stored') || tries === TRIES) throw error
        await wait(TRY_AGAIN_MS, undefined, { signal })
      }
    }
  }

  return {
    load: (records) => loadStored(db, environment, records),
    async keep(events, { at: receivedAt }) {
      for (let i = 0; i < events.length; i += EVENTS_PER_BATCH) {
        const batch = events.slice(i, i + EVENTS_PER_BATCH).map(({ body }) => {
          const from = { endpoint: BACKFILL_ENDPOINT, headers: 'reported' } as const
          return ingestUntilStored({ ...from, environment, body, receivedAt })
        })
        await Promise.allSettled(batch)
        await Promise.all(batch)
      }
    },
    result: async (run) => ({
      stored: await countStored(db, run),
      access: summaryOf(await accessChanged(db, run)),
    }),
  }
}

async function loadStored(db: Db, environment: Environment, records: readonly ReadRecord[]): Promise<Stored> {
  const paymentIds = records.map(paymentIdOf).filter((id) => id !== null)
  const links = await loadLinks(db, environment, paymentIds)
  const keys = new Map(
    records.flatMap((record) => sourcesOf(record, links)).map((key) => [sourceKey(key), key]),
  )
  const rows = await loadSourceRows(db, environment, [...keys.values()])
  const histories = rows.map(
    (row) => [sourceKey({ kind: row.kind, id: row.source_id }), readHistory(row)] as const,
  )
  return { links, histories: new Map(histories) }
}

/** By type. Counted in the store, so that a run that was killed counts what it had stored, too. */
async function countStored(db: Db, { plan, newestSeq: before }: Backfill) {
  const filter = { environment: plan.environment, endpoint: BACKFILL_ENDPOINT }
  const any = { disposition: null, type: null, customerId: null, from: null, to: null }
  const counts: Record<string, number> = {}
  for await (const { matching } of walkEvents(db, { ...any, ...filter }, 'oldest first', before)) {
    for (const type of await typesOf(db, matching)) counts[type] = (counts[type] ?? 0) + 1
  }
  return counts
}

async function typesOf(db: Db, seqs: readonly number[]): Promise<readonly string[]> {
  if (seqs.length === 0) return []
  const rows = await db.selectFrom('events').select('type').where('seq', 'in', seqs).execute()
  return rows.flatMap(({ type }) => type ?? [])
}

const CHANGES_AT_ONCE = 500

/** Between what each entitlement was before the first report, and what it was after the last. */
async function accessChanged(db: Db, { plan, newestChange }: Backfill): Promise<readonly AccessDifference[]> {
  const { environment } = plan
  const changed = new Map<
    string,
    { customerId: string; productId: string; before: AccessSnapshot; after: AccessSnapshot }
  >()
  for (let after = newestChange; ; ) {
    const changes = await loadChanges(db, environment, after, CHANGES_AT_ONCE)
    const last = changes.at(-1)
    if (last === undefined) break
    for (const { customerId, productId, before, after: is, cause } of changes) {
      if (cause.eventId === null || !isReportedEventId(cause.eventId)) continue
      const name = JSON.stringify([customerId, productId])
      const was = changed.get(name)?.before ?? before
      changed.set(name, { customerId, productId, before: was, after: is })
    }
    after = last.cursor
  }
  return [...changed.values()]
    .filter(({ before, after }) => isChange(before, after))
    .map((one) => ({ environment, ...one }))
}

/** Where a run begins, to tell later what came of it. */
export async function placeNow(db: Db): Promise<Pick<Backfill, 'newestSeq' | 'newestChange'>> {
  return { newestSeq: await newestSeq(db), newestChange: await latestCursor(db) }
}
