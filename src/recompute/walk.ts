import type { Transaction } from 'kysely'
import { seqsInHistory } from '../entitlements/history.js'
import type { EventFilter } from '../entitlements/stored-event.js'
import type { Environment } from '../provider/event.js'
import { glanceAtEvents, isMeant } from '../store/event-walk.js'
import {
  type EventPlace,
  type GroupRow,
  loadCustomersWithoutSources,
  loadGroupRows,
  loadGroupRowsBeyond,
  loadHistories,
  loadPlaces,
  loadPlacesOf,
  type SourceHistory,
} from '../store/group-rows.js'
import type { JobMeaning } from '../store/recompute-job.js'
import type { Database } from '../store/schema.js'
import type { Seeds } from './group.js'
import { createSeqSet, isDone, type Run } from './run.js'

const PLACES_AT_ONCE = 2_000
const SOURCES_AT_ONCE = 500

/** Does something in a transaction of its own, between deliveries. */
export type InTurn = <T>(work: (trx: Transaction<Database>) => Promise<T>) => Promise<T>

/** Goes through the events that are meant, in the order of arrival, up to the newest one as the job began. */
export interface Walk {
  /** The next ones that are not done. */
  read(trx: Transaction<Database>): Promise<readonly GroupRow[]>
  /** Moves the job's place beyond those that were read last. */
  advance(): void
}

export function walkEvents(run: Run, limit: number): Walk {
  const { scope } = run.job
  return isList(scope) ? walkAll(run, scope, limit) : walkFiltered(run, scope, limit)
}

export function isList(scope: JobMeaning['scope']): scope is readonly Environment[] {
  return Array.isArray(scope)
}

function walkAll(run: Run, scope: readonly Environment[], limit: number): Walk {
  let next = 0
  return {
    async read(trx) {
      const { reached, newest } = run.job
      const rows = await loadGroupRowsBeyond(trx, reached, newest, limit)
      next = rows.length < limit ? newest : (rows.at(-1)?.seq ?? newest)
      return rows.filter(({ seq, environment }) => scope.includes(environment) && !isDone(run, seq))
    },
    advance() {
      run.job = { ...run.job, reached: next }
    },
  }
}

function walkFiltered(run: Run, filter: EventFilter, limit: number): Walk {
  const { newest } = run.job
  let seen = run.job.reached
  let waiting: readonly number[] = []
  return {
    async read(trx) {
      if (waiting.length === 0) {
        const glances = await glanceAtEvents(trx, filter, 'oldest first', seen)
        seen = Math.min(glances.at(-1)?.seq ?? newest, newest)
        waiting = glances.filter((one) => one.seq <= newest && isMeant(one, filter)).map(({ seq }) => seq)
      }
      const next = waiting.slice(0, limit).filter((seq) => !isDone(run, seq))
      return loadGroupRows(trx, next)
    },
    advance() {
      const last = waiting[limit - 1]
      waiting = waiting.slice(limit)
      run.job = { ...run.job, reached: waiting.length > 0 && last !== undefined ? last : seen }
    },
  }
}

/** Finds the events that no source's history names, though they belong to one: only damage makes any. */
export async function* findUnlisted(
  { job: { newest } }: Run,
  inTurn: InTurn,
): AsyncGenerator<readonly EventPlace[]> {
  const listed = createSeqSet()
  let source: number | undefined = Number.MIN_SAFE_INTEGER
  while (source !== undefined) {
    const after: number = source
    const rows = await inTurn((trx) => loadHistories(trx, after, SOURCES_AT_ONCE))
    for (const { history } of rows) for (const seq of seqsInHistory(history) ?? []) listed.add(seq)
    source = rows.at(-1)?.seq
  }
  for (let reached = 0; reached < newest; ) {
    const after = reached
    const places = await inTurn((trx) => loadPlaces(trx, after, newest, PLACES_AT_ONCE))
    yield places.filter(({ seq }) => !listed.has(seq))
    reached = places.at(-1)?.seq ?? newest
  }
}

/** What no event leads to: sources without events, and entitlements of customers without sources. */
export async function sweep(
  environments: readonly Environment[],
  inTurn: InTurn,
  settle: (trx: Transaction<Database>, environment: Environment, seeds: Seeds) => Promise<void>,
): Promise<void> {
  let source: number | undefined = Number.MIN_SAFE_INTEGER
  while (source !== undefined) {
    const after: number = source
    source = await inTurn(async (trx) => {
      const found = await loadHistories(trx, after, SOURCES_AT_ONCE)
      const alone = await withoutEvents(trx, found)
      for (const environment of environments) {
        const sources = alone.filter((one) => one.environment === environment)
        if (sources.length > 0) await settle(trx, environment, { sources })
      }
      return found.at(-1)?.seq
    })
  }
  let customer: Awaited<ReturnType<typeof loadCustomersWithoutSources>>['next'] = null
  do {
    const after: typeof customer = customer
    customer = await inTurn(async (trx) => {
      const { found, next } = await loadCustomersWithoutSources(trx, after, SOURCES_AT_ONCE)
      for (const environment of environments) {
        const own = found.filter((one) => one.environment === environment)
        const customerIds = own.map(({ customerId }) => customerId)
        if (own.length > 0) await settle(trx, environment, { customerIds })
      }
      return next
    })
  } while (customer !== null)
}

/** Those to which the first event that their history names does not belong: to the others, their events have led. */
async function withoutEvents(
  trx: Transaction<Database>,
  sources: readonly SourceHistory[],
): Promise<readonly SourceHistory[]> {
  const first = sources.map(({ history }) => seqsInHistory(history)?.[0] ?? 0)
  const places = new Map((await loadPlacesOf(trx, first)).map((place) => [place.seq, place]))
  return sources.filter(({ environment, kind, id }, i) => {
    const place = places.get(first[i] ?? 0)
    return place?.environment !== environment || place.source_kind !== kind || place.source_id !== id
  })
}
