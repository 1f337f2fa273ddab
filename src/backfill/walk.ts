/*
 * The walk of a backfill: what is asked of the payments service, in which order, and what is done with the answers. Each
 * page is read, reported and saved before the next one is asked for, so that a walk that was broken off goes on there.
 */

import { unpackHistory } from '../entitlements/history.js'
import { LatchkeyError } from '../errors.js'
import type { Listed, Page, PaymentsApi } from '../payments-api/client.js'
import { isPaymentsApiError } from '../payments-api/failure.js'
import { isJsonObject, type JsonObject } from '../provider/json.js'
import { type KeptRow, loadKept, loadKeptIds, nextKeptIds } from '../store/backfill.js'
import type { Db } from '../store/schema.js'
import { policyInForce } from '../store/settings.js'
import { loadSourceRowsOf, loadSourcesAfter } from '../store/sources.js'
import { createLedger, type LedgerDeps } from './ledger.js'
import type { Reading } from './reporter.js'
import { CHUNK, createReports, createRest, idOf, type Kind, type Unit, unusable } from './reports.js'
import { type Backfill, type Outcome, PHASES, type Phase, type Result, readIn, withOutcomes } from './run.js'
import { createTrial } from './trial.js'

export interface WalkDeps extends LedgerDeps {
  readonly api: PaymentsApi
  readonly db: Db
  readonly clock: () => number
  readonly run: () => Backfill
  /** Saves how far it is, with what is kept from now on. Rejects once the walk is to stop. */
  readonly save: (change: Partial<Backfill>, keeps?: readonly KeptRow[]) => Promise<void>
}

/** A list whose cursor has expired is read from its beginning so often. */
const BEGIN_AGAIN_AT_MOST = 3
/** So many pages in a row that show nothing new: more than any account has, so the list would never end. */
const NOTHING_NEW_AT_MOST = 10_000
const ENDLESS =
  'A list of the payments service does not end: its pages show nothing new. Ask the payments service.'
/** A record that was kept for longer, since the walk was broken off, is asked for again. */
const STALE_MS = 2 * 60 * 60 * 1000
/** How many sources are looked at for access before their records are asked for. */
const SOURCES_AT_ONCE = 200

/** Records and charged-back payments that lists have shown, each once. */
const listedIn = (run: Backfill): number => readIn(run) + (run.found.chargebacks ?? 0)

/** What all phases do: read page after page, or one by one, and save each with what it came to. */
function createSteps({ db, run, save, signal }: WalkDeps, reports: ReturnType<typeof createReports>) {
  const { plan } = run()
  const { environment, customerId } = plan
  const { takeReading, recordsOf, reportById } = reports

  const next = (phase: Phase): Partial<Backfill> => ({
    phase: PHASES[PHASES.indexOf(phase) + 1] ?? 'result',
    place: null,
  })

  /** Page after page from where it was left. @param work answers with what is saved with the page */
  async function walkList<T, Place extends string | number>(
    { pages }: Listed<T, Place>,
    work: (
      page: Page<T, Place>,
      reading: Reading,
    ) => Promise<readonly [Partial<Backfill>, readonly KeptRow[]]>,
  ): Promise<void> {
    const { phase } = run()
    for (let begun = 0; ; begun += 1) {
      try {
        const read = pages({ from: run().place as Place | null, signal })
        for (let repeated = 0; repeated < NOTHING_NEW_AT_MOST; ) {
          const reading = await takeReading()
          const { value: page, done } = await read.next()
          if (done) return
          const [change, keeps] = await work(page, reading)
          const before = listedIn(run())
          await save({ ...change, ...(page.next === null ? next(phase) : { place: page.next }) }, keeps)
          repeated = listedIn(run()) > before ? 0 : repeated + 1
        }
        throw new LatchkeyError('payments_api_unreadable', ENDLESS)
      } catch (error) {
        if (!isPaymentsApiError(error, 'cursor_refused') || begun === BEGIN_AGAIN_AT_MOST) throw error
        await save({ place: null })
      }
    }
  }

  /** The records of a page that are asked for, and which of them were not read before. */
  async function sortPage(
    kind: Kind,
    { items, unreadable }: Pick<Page<unknown, never>, 'items' | 'unreadable'>,
  ) {
    const isAsked = (json: JsonObject) => customerId === null || json.customerId === customerId
    const records = await recordsOf(kind, items.map(({ raw }) => raw).filter(isAsked))
    const odd = unreadable.map(({ raw }) => (isJsonObject(raw) ? raw : {})).filter(isAsked)
    const outcomes = odd.map((raw) => unusable(kind, idOf(raw)))
    const ids = [...records.map(({ json }) => idOf(json)), ...outcomes.map(({ id }) => id)]
    const before = await loadKeptIds(db, environment, kind, ids)
    return { records, outcomes, fresh: new Set(ids.filter((id) => !before.has(id))) }
  }

  /** @param fresh those that were not read before: what a record came to counts the first time */
  function counted(kind: Kind, fresh: ReadonlySet<string>, outcomes: readonly Outcome[]) {
    const { found } = run()
    const name = kind === 'payment' ? 'payments' : 'subscriptions'
    const first = outcomes.filter(({ id, report }) => report === null || fresh.has(id))
    return { found: { ...withOutcomes(found, first), [name]: found[name] + fresh.size } }
  }

  /** Asks for those of these that were not read yet, one by one, and reports them. */
  async function askFor(kind: Kind, ids: readonly string[]): Promise<void> {
    if (!(kind === 'payment' ? plan.payments : plan.subscriptions)) return
    const before = await loadKeptIds(db, environment, kind, ids)
    const left = [...new Set(ids)].filter((id) => !before.has(id))
    for (let i = 0; i < left.length; i += CHUNK) {
      const asked = left.slice(i, i + CHUNK)
      const outcomes = await reportById(kind, asked)
      const known = outcomes.filter(({ report }) => report !== null).map(({ id }) => id)
      const keeps = asked.map((id) => seen(kind, id))
      await save(counted(kind, new Set(known), outcomes), keeps)
    }
  }

  return { next, walkList, sortPage, counted, askFor }
}

/** Answers with what came of it. Rejects with the failure that ends it, or with the reason of the signal. */
export async function walk(deps: WalkDeps): Promise<Result> {
  const { api, db, clock, run, save, signal, aheadAtMostMs } = deps
  const { plan } = run()
  const { environment, customerId } = plan
  const rest = createRest(signal)
  const ledger = plan.dryRun
    ? createTrial(environment, { db, clock, keepRows: (rows) => save({}, rows), pause: () => rest(0) })
    : createLedger(environment, deps)

  const reports = createReports({
    ...deps,
    ...{ ledger, rest, by: 'backfill', newestBefore: run().newestSeq },
  })
  const { readOne, reportAll } = reports
  const { next, walkList, sortPage, counted, askFor } = createSteps(deps, reports)

  async function listChargebacks(): Promise<void> {
    if (!plan.payments || api.legacy === null) return
    await walkList(api.legacy.payments.withStatus('CHARGEBACK'), async ({ items }) => {
      const ids = items.map(({ record }) => record.id)
      const before = await loadKeptIds(db, environment, 'chargeback', ids)
      const fresh = new Set(ids.filter((id) => !before.has(id)))
      const { found } = run()
      const keeps = [...fresh].map((id) => seen('chargeback', id))
      return [{ found: { ...found, chargebacks: (found.chargebacks ?? 0) + fresh.size } }, keeps]
    })
  }

  /** The lists can't be asked for those of one customer: what the store knows of them is asked for by id. */
  async function readCustomer(): Promise<void> {
    if (customerId === null) return
    const rows = await loadSourceRowsOf(db, environment, [customerId])
    const events = rows.flatMap(({ history }) => unpackHistory(history) ?? [])
    const subscriptions = rows.flatMap((row) => (row.kind === 'subscription' ? row.source_id : []))
    const payments = [
      ...rows.flatMap((row) => (row.kind === 'payment' ? row.source_id : [])),
      ...events.flatMap((event) => (event.subject === 'manual' ? [] : (event.paymentId ?? []))),
    ]
    if (subscriptions.length + payments.length === 0) return
    await askFor('payment', payments)
    await askFor('subscription', subscriptions)
    await save({ isById: true })
  }

  async function keepSubscriptions(): Promise<void> {
    if (!plan.subscriptions || run().isById) return
    await walkList(api.subscriptions, async (page, { at, newestSeq: newest }) => {
      const { records, outcomes, fresh } = await sortPage('subscription', page)
      const keeps = records.map(({ json }): KeptRow => {
        const row = seen('subscription', idOf(json))
        return { ...row, record: JSON.stringify(json), read_at: at, newest_seq: newest }
      })
      const odd = outcomes.map(({ id }) => seen('subscription', id))
      return [counted('subscription', fresh, outcomes), [...odd, ...keeps]]
    })
  }

  async function reportPayments(): Promise<void> {
    if (!plan.payments || run().isById) return
    await walkList(api.payments, async (page, reading) => {
      const { records, outcomes, fresh } = await sortPage('payment', page)
      const reported = await reportAll(records.map((record) => ({ record, reading })))
      return [
        counted('payment', fresh, [...reported, ...outcomes]),
        [...fresh].map((id) => seen('payment', id)),
      ]
    })
  }

  async function reportKept(): Promise<void> {
    if (!plan.subscriptions || run().isById) return
    for (;;) {
      const { place, found } = run()
      const ids = await nextKeptIds(db, environment, 'subscription', String(place ?? ''), CHUNK)
      const last = ids.at(-1)
      if (last === undefined) return
      const policy = await policyInForce(db)
      const outcomes: Outcome[] = []
      const units: Unit[] = []
      for (const { id, record, read_at: at, newest_seq: newest } of await loadKept(
        db,
        environment,
        'subscription',
        ids,
      )) {
        // Unusable, and listed by now.
        if (at === null || newest === null) continue
        const read = { environment, at, newestSeq: newest, by: 'backfill', policy, aheadAtMostMs } as const
        const unit: Unit | Outcome =
          record === null || clock() - at > STALE_MS
            ? await readOne('subscription', id)
            : { record: { kind: 'subscription', json: JSON.parse(record) as JsonObject }, reading: read }
        if ('report' in unit) outcomes.push(unit)
        else units.push(unit)
      }
      outcomes.push(...(await reportAll(units)))
      await save({ found: withOutcomes(found, outcomes), place: last })
    }
  }

  /** Lists may leave out what has ended: whatever gives access here is asked for. */
  async function readUnlisted(): Promise<void> {
    if (customerId !== null) return
    for (;;) {
      const place = Number(run().place ?? 0)
      const sources = await loadSourcesAfter(db, place, SOURCES_AT_ONCE)
      const last = sources.at(-1)
      if (last === undefined) return
      const now = clock()
      const giving = sources.filter(
        (source) =>
          source.environment === environment &&
          source.state.intervals.some(({ from, until }) => from <= now && (until === null || until > now)),
      )
      for (const kind of ['payment', 'subscription'] as const) {
        await askFor(
          kind,
          giving.flatMap(({ state }) => (state.kind === kind ? state.id : [])),
        )
      }
      await save({ place: last.seq })
      await rest(0)
    }
  }

  const phases: Readonly<Record<Exclude<Phase, 'result'>, () => Promise<void>>> = {
    chargebacks: listChargebacks,
    customer: readCustomer,
    subscriptions: keepSubscriptions,
    payments: reportPayments,
    kept: reportKept,
    unlisted: readUnlisted,
  }
  for (const phase of PHASES) {
    if (phase === 'result' || run().phase !== phase) continue
    await phases[phase]()
    // The last page of a list has it saved already.
    if (run().phase === phase) await save(next(phase))
  }
  return ledger.result(run())
}

function seen(kind: KeptRow['kind'], id: string): KeptRow {
  return { kind, id, part: '', record: null, read_at: null, newest_seq: null }
}
