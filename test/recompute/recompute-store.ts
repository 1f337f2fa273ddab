import fc from 'fast-check'
import { type Kysely, sql } from 'kysely'
import { expect, onTestFinished } from 'vitest'
import type { Policy } from '../../src/entitlements/policy.js'
import { createBatchWriter, type WriteBatch } from '../../src/ingest/commit.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { applyPlan } from '../../src/recompute/apply.js'
import { compareStored } from '../../src/recompute/compare.js'
import type {
  ApplyPlan,
  ComparePlan,
  RecomputePlan,
  RecomputeReport,
  StateDifference,
  WorkOptions,
} from '../../src/recompute/run.js'
import { EPOCH_SETTING } from '../../src/store/changes.js'
import type { EventFilter } from '../../src/store/event-walk.js'
import { migrate } from '../../src/store/migrate.js'
import type { Database } from '../../src/store/schema.js'
import { ensurePolicy, policyInForce } from '../../src/store/settings.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { mixedHistory } from '../entitlements/histories.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'
import { customersIn, SOURCE_COLUMNS } from '../store/tables.js'
import { migratedFile } from '../store/temporary-store.js'

export const NOW = Date.UTC(2030, 0, 1)

/** Deliveries of several sources and customers, of which each goes to one of the two environments. */
export const deliveries: fc.Arbitrary<readonly Delivery[]> = fc
  .tuple(mixedHistory, fc.infiniteStream(fc.constantFrom('live', 'live', 'sandbox')))
  .map(([events, environments]) =>
    events.map((event) => deliveryOf(bodyOf(event), { environment: environments.next().value })),
  )

/** Few at once, so that short histories take several turns. */
export const PACE = { eventsPerTurn: 4, eventsPerSave: 5 }

export interface RecomputeStore {
  readonly file: string
  readonly db: Kysely<Database>
  readonly writeBatch: WriteBatch
  readonly recompute: (plan: RecomputePlan, options?: WorkOptions) => Promise<RecomputeReport>
  close(): Promise<void>
}

const BOTH = ['live', 'sandbox'] as const

/** Works everything out again; under another policy, that one is in force from then on. */
export const REBUILD: ApplyPlan = { scope: BOTH, endpoints: null, policy: null, mode: 'apply' }
/** Compares everything. */
export const VERIFY: ComparePlan = { ...REBUILD, mode: 'verify' }

/** Reads events of one environment again. */
export function replayOf(filter?: Partial<EventFilter>, plan?: Partial<ApplyPlan>): ApplyPlan
export function replayOf(filter: Partial<EventFilter>, plan: Partial<ComparePlan>): ComparePlan
export function replayOf(
  filter: Partial<EventFilter> = {},
  plan: Partial<RecomputePlan> = {},
): RecomputePlan {
  const all = { disposition: null, type: null, customerId: null, endpoint: null, from: null, to: null }
  return {
    scope: { environment: 'live', ...all, ...filter },
    endpoints: {},
    policy: null,
    mode: 'apply',
    ...plan,
  } as RecomputePlan
}

/** All that is stored otherwise than its events say. */
export async function differencesIn(
  { recompute }: Pick<RecomputeStore, 'recompute'>,
  options: Pick<WorkOptions, 'onProgress'> = {},
): Promise<StateDifference[]> {
  const { differences } = await recompute({ ...VERIFY, sampleSize: Number.POSITIVE_INFINITY }, options)
  return [...differences.named]
}

/**
 * A store as a daemon that was started with this policy keeps it, with deliveries taken in. No write waits for the
 * disk: what these stores hold is asked of them alone.
 */
export async function storeUnder(
  policy: Policy,
  deliveries: readonly Delivery[] = [],
  { file, clock = () => NOW }: { readonly file?: string; readonly clock?: () => number } = {},
): Promise<RecomputeStore> {
  const path = file ?? (await migratedFile())
  const db = openDatabase(path, { readOnly: false })
  const reader = openDatabase(path, { readOnly: true })
  let closed = false
  const close = async (): Promise<void> => {
    if (!closed) await Promise.all([db.destroy(), reader.destroy()])
    closed = true
  }
  onTestFinished(close)
  if (file !== undefined) await migrate(db)
  await sql`pragma synchronous = off`.execute(db)
  await ensurePolicy(db, policy)
  const writeBatch = createBatchWriter({ db, policy: policyInForce, clock })
  for (const delivery of deliveries) await writeBatch([delivery])
  return {
    file: path,
    db,
    writeBatch,
    // A comparison has a reading connection of its own, as in the daemon.
    recompute: (plan, options) =>
      plan.mode === 'apply'
        ? applyPlan({ db, clock, pace: PACE }, plan, options)
        : compareStored(reader, plan, { ...options, clock, pace: PACE }),
    close,
  }
}

/** It ends as a store that has taken all of this in under the policy. Both are closed. */
export async function expectAsAnew(
  store: RecomputeStore,
  policy: Policy,
  told: readonly Delivery[],
): Promise<void> {
  const anew = await storeUnder(policy, told)
  expect(await standing(store.db)).toEqual(await standing(anew.db))
  await Promise.all([store.close(), anew.close()])
}

/** Stops the work before the turn that many turns on; null: it was done by then. */
export function interruptedAt(
  turns: number,
  { recompute: run }: Pick<RecomputeStore, 'recompute'>,
  plan: RecomputePlan,
  options: WorkOptions = {},
): Promise<string | null> {
  let asked = 0
  return run(plan, { ...options, isStopping: () => asked++ === turns }).then(
    () => null,
    (error: { readonly code: string }) => error.code,
  )
}

/** All that follows from the stored events, and these, as the tables hold it. */
export async function standing(db: Kysely<Database>) {
  const { cursor: _, ...tables } = await everything(db)
  return tables
}

/** The same, and where the change log stands. */
export async function everything(db: Kysely<Database>) {
  const rowsOf = async (table: string, order: string) =>
    (await sql`select * from ${sql.table(table)} order by ${sql.raw(order)}`.execute(db)).rows
  const settings = db.selectFrom('settings').selectAll().orderBy('key')
  const cursor = db.selectFrom('changes').select((eb) => eb.fn.max('cursor').as('cursor'))
  return {
    sources: await db
      .selectFrom('sources')
      .select(SOURCE_COLUMNS)
      .orderBy('environment')
      .orderBy('kind')
      .orderBy('source_id')
      .execute(),
    entitlements: await rowsOf('entitlements', 'environment, customer_id, product_id'),
    links: await rowsOf('payment_links', 'environment, payment_id'),
    customers: await customersIn(db),
    references: await rowsOf('customer_references', 'environment, name, value, customer_id'),
    events: await rowsOf('events', 'seq'),
    // The epoch is drawn by lot, once for each store.
    settings: await settings.where('key', '!=', EPOCH_SETTING).where('key', 'not like', 'job.%').execute(),
    cursor: await cursor.execute(),
  }
}
