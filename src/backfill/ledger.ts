/* The stored events that reports are decided by, and where reported events go: into the store. */

import { setTimeout as wait } from 'node:timers/promises'
import { sql } from 'kysely'
import { isChange } from '../entitlements/entitlement.js'
import { sourceKey } from '../entitlements/source-of.js'
import { isLatchkeyError } from '../errors.js'
import type { Receipt } from '../ingest/delivery.js'
import { BACKFILL_ENDPOINT } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { isReportedEventId } from '../provider/ids.js'
import { isJsonObject, parseJsonBody } from '../provider/json.js'
import { compareText } from '../provider/order.js'
import { type AccessDifference, type DifferenceSummary, summarise } from '../recompute/run.js'
import { type Change, loadChanges, loadChangesOfCustomers, newestCursor } from '../store/changes.js'
import { engineOf } from '../store/engine.js'
import { newestSeq, walkEvents } from '../store/event-walk.js'
import type { DeliveryInput } from '../store/events.js'
import type { Db } from '../store/schema.js'
import { loadLinks, loadSourceRows, readHistory } from '../store/sources.js'
import { paymentIdOf, type ReadRecord, type Stored, sourcesOf } from './report.js'
import type { ReportedEvent } from './reporter.js'
import type { Backfill, Result } from './run.js'

/** A reported event, and when the reading of its record began. */
export interface ReadEvent extends ReportedEvent {
  readonly receivedAt: number
}

export interface Ledger {
  /** What is stored, or would be, that the reports of these records depend on. */
  load(records: readonly ReadRecord[]): Promise<Stored>
  /** Every later `load` sees these events. */
  keep(events: readonly ReadEvent[]): Promise<void>
  result(run: Backfill): Promise<Result>
}

export interface LedgerDeps {
  readonly db: Db
  /** As for a delivery: it resolves once the event is committed. */
  readonly ingest: (delivery: DeliveryInput) => Promise<Receipt>
  /** How far ahead of its receipt an event of this environment may be dated. */
  readonly aheadAtMostMs: number
  readonly signal: AbortSignal
}

/** Deliveries may share the transaction, and wait for it. */
const EVENTS_PER_BATCH = 32
/** A store that can't be written for so long has the backfill fail. */
const TRIES = 60
const TRY_AGAIN_MS = 1_000

const ACCESS_SAMPLE = 100

const compare = (a: AccessDifference, b: AccessDifference): number =>
  compareText(a.customerId, b.customerId) || compareText(a.productId, b.productId)

/**
 * Adds up differences, each once. The examples are the first in the order of customers and products, so that a dry run
 * and what it announces show the same ones.
 */
export function createSummary() {
  let sum: DifferenceSummary = { gains: 0, losses: 0, otherwise: 0, sample: [] }
  return {
    add(more: readonly AccessDifference[]): void {
      const { gains, losses, otherwise } = summarise(more).all
      sum = {
        gains: sum.gains + gains,
        losses: sum.losses + losses,
        otherwise: sum.otherwise + otherwise,
        sample: [...sum.sample, ...more].sort(compare).slice(0, ACCESS_SAMPLE),
      }
    },
    summary: (): DifferenceSummary => sum,
  }
}

/** Of the store itself. */
export function createLedger(
  environment: Environment,
  { db, ingest, aheadAtMostMs, signal }: LedgerDeps,
): Ledger {
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
    async keep(events) {
      for (let i = 0; i < events.length; i += EVENTS_PER_BATCH) {
        const batch = events.slice(i, i + EVENTS_PER_BATCH).map(({ body, receivedAt }) => {
          const from = { endpoint: BACKFILL_ENDPOINT, headers: 'reported' } as const
          return ingestUntilStored({ ...from, environment, body, receivedAt, aheadAtMostMs })
        })
        await Promise.allSettled(batch)
        await Promise.all(batch)
      }
    },
    async result(run) {
      const { stored, foreign } = await countStored(db, run)
      return { stored, access: await accessChanged(db, run, foreign) }
    },
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

/**
 * What a backfill has stored: how many events of each type; and what was reported meanwhile for held events, which is not
 * its own. Counted in the store, so that a run that was killed counts what it had stored, too.
 */
async function countStored(db: Db, { plan, newestSeq: before }: Backfill) {
  const filter = { environment: plan.environment, endpoint: BACKFILL_ENDPOINT }
  const any = { disposition: null, type: null, customerId: null, from: null, to: null }
  const stored: Record<string, number> = {}
  const foreign = new Set<string>()
  for await (const { matching } of walkEvents(db, { ...any, ...filter }, 'oldest first', before)) {
    for (const { event_id: id, type, body } of await loadReported(db, plan.environment, matching)) {
      if (type === null || !isReportedEventId(id)) continue
      if (body !== null && isByHydrate(body)) foreign.add(id)
      else stored[type] = (stored[type] ?? 0) + 1
    }
  }
  return { stored, foreign }
}

const BY_HYDRATE = Buffer.from('"by":"hydrate"')

/**
 * All of these, which follow each other. Bodies only where they seem to say that they were reported for a held event. By
 * the first and the last, since a statement with all their numbers takes much memory until it is collected.
 */
async function loadReported(db: Db, environment: Environment, seqs: readonly number[]) {
  if (seqs.length === 0) return []
  const { rows } = await sql<{ event_id: string; type: string | null; body: Buffer | null }>`
    select event_id, type, case when ${engineOf(db).contains('body', BY_HYDRATE)} then body end as body
    from events where seq between ${seqs[0]} and ${seqs.at(-1)}
      and environment = ${environment} and endpoint = ${BACKFILL_ENDPOINT}`.execute(db)
  return rows
}

/** A record may hold the same words. */
function isByHydrate(body: Buffer): boolean {
  const json = parseJsonBody(body)
  const reported = json.ok ? json.object.reported : null
  return isJsonObject(reported) && reported.by === 'hydrate'
}

const CHANGES_AT_ONCE = 500

/**
 * Between what each entitlement was before the first report, and what it was after the last. Customer by customer, in
 * pages: all of them would take much memory.
 */
async function accessChanged(
  db: Db,
  { plan: { environment }, newestChange }: Backfill,
  foreign: ReadonlySet<string>,
): Promise<DifferenceSummary> {
  const summary = createSummary()
  // What the run has reported is committed, whatever else is still being written.
  const upTo = await newestCursor(db)
  for (let after = newestChange; ; ) {
    const page = await loadChanges(db, environment, after, CHANGES_AT_ONCE, { upTo })
    const last = page.at(-1)
    if (last === undefined) return summary.summary()
    const customerIds = page.map(({ customerId }) => customerId)
    const changes = await loadChangesOfCustomers(db, environment, customerIds)
    const since = changes.filter(({ cursor }) => cursor > newestChange)
    for (const own of Map.groupBy(since, ({ customerId }) => customerId).values()) {
      // Those of an earlier page were counted with it.
      if ((own[0]?.cursor ?? 0) > after) summary.add(differencesOf(own, foreign))
    }
    after = last.cursor
  }
}

/** What reports have changed for one customer. */
function differencesOf(
  changes: readonly Change[],
  foreign: ReadonlySet<string>,
): readonly AccessDifference[] {
  const reported = changes.filter(
    ({ cause: { eventId } }) => eventId !== null && isReportedEventId(eventId) && !foreign.has(eventId),
  )
  return [...Map.groupBy(reported, ({ productId }) => productId).values()].flatMap((own) => {
    const [first, last] = [own[0], own.at(-1)]
    if (first === undefined || last === undefined || !isChange(first.before, last.after)) return []
    const { environment, customerId, productId, before } = first
    return { environment, customerId, productId, before, after: last.after }
  })
}

/** Where a run begins, to tell later what came of it. */
export async function placeNow(db: Db): Promise<Pick<Backfill, 'newestSeq' | 'newestChange'>> {
  return { newestSeq: await newestSeq(db), newestChange: await newestCursor(db) }
}
