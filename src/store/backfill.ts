/* What is stored of backfills: what each has done so far, and, while one runs, what it has read and still needs. */

import { type Insertable, type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkUpsert, lookupIn } from './bulk.js'
import { engineOf } from './engine.js'
import type { BackfillRecordsTable, Db, Tx } from './schema.js'
import { getSetting, setSetting } from './settings.js'

/** Followed by the id of a backfill. */
const RECORD = 'backfill.'
/** The id of the backfill that is to stop. */
const STOPPING = 'backfill_stopping'

export type KeptRow = Omit<Selectable<BackfillRecordsTable>, 'environment'>
type KeptKind = KeptRow['kind']

export async function loadBackfills(db: Db): Promise<readonly string[]> {
  const rows = await db.selectFrom('settings').select('value').where('key', 'like', `${RECORD}%`).execute()
  return rows.map(({ value }) => value)
}

export interface BackfillStep {
  readonly environment: Environment
  readonly id: string
  /** All that is known of the backfill, as text. */
  readonly record: string
  /** What it keeps from now on; a row with the same key is replaced. */
  readonly keeps?: readonly KeptRow[]
  /** Whether all that was kept before in its environment goes. */
  readonly drops?: boolean
}

const upsert = bulkUpsert('backfill_records', ['environment', 'kind', 'id', 'part'])
const erasedAmong = lookupIn<{ id: string }>('customer_id', sql`select customer_id as id from erasures where`)

/** @returns whether somebody has asked for it to stop, at any instance */
export async function saveBackfill(trx: Tx, step: BackfillStep): Promise<boolean> {
  const { environment, id, record, keeps = [], drops = false } = step
  if (drops) await trx.deleteFrom('backfill_records').where('environment', '=', environment).execute()
  const owners = new Map(keeps.map((row) => [row, ownerOf(row)]))
  const named = [...owners.values()].filter((one) => one !== null)
  const erased = new Set((await erasedAmong(trx, environment, named)).map((one) => one.id))
  // Of somebody who was erased after the page was asked for.
  const isErased = (row: KeptRow) => erased.has(owners.get(row) ?? '')
  // A page may show a record twice.
  const rows = new Map(
    keeps.map((row): [string, Insertable<BackfillRecordsTable>] => {
      const key = JSON.stringify([row.kind, row.id, row.part])
      return [key, { environment, ...row, record: isErased(row) ? null : row.record }]
    }),
  )
  await upsert(trx, [...rows.values()])
  await setSetting(trx, `${RECORD}${id}`, record)
  return (await getSetting(trx, STOPPING)) === id
}

/** The customer of a record that is kept whole. */
function ownerOf({ kind, record }: KeptRow): string | null {
  if (kind !== 'subscription' || record === null) return null
  const { customerId } = JSON.parse(record) as { readonly customerId?: unknown }
  return typeof customerId === 'string' ? customerId : null
}

export const stopBackfill = (trx: Tx, id: string): Promise<void> => setSetting(trx, STOPPING, id)

export async function forgetBackfill(trx: Tx, id: string): Promise<void> {
  await trx.deleteFrom('settings').where('key', '=', `${RECORD}${id}`).execute()
}

/** Removes a person's records from what is kept: they are read again when it is their turn. Events are kept without personal data. */
export async function forgetKeptOf(trx: Tx, environment: Environment, customerId: string): Promise<void> {
  await sql`update backfill_records set record = null where environment = ${environment}
    and kind = 'subscription' and ${engineOf(trx).contains('record', JSON.stringify(customerId))}`.execute(
    trx,
  )
}

const selectKept = bulkLookup<KeptRow>(
  ['environment', 'kind', 'id'],
  sql`select kind, id, part, record, read_at, newest_seq from backfill_records where`,
)

export function loadKept(db: Db, environment: Environment, kind: KeptKind, ids: readonly string[]) {
  return selectKept(
    db,
    [...new Set(ids)].map((id) => [environment, kind, id]),
  )
}

/** Those among these ids that were read. */
export async function loadKeptIds(db: Db, environment: Environment, kind: KeptKind, ids: readonly string[]) {
  return new Set((await loadKept(db, environment, kind, ids)).map(({ id }) => id))
}

/** The next ids of a kind, in order. */
export async function nextKeptIds(
  db: Db,
  environment: Environment,
  kind: KeptKind,
  after: string,
  limit: number,
): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct id from backfill_records where environment = ${environment} and kind = ${kind}
      and id > ${after} order by id limit ${limit}`.execute(db)
  return rows.map(({ id }) => id)
}
