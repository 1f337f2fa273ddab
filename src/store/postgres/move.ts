import { sql } from 'kysely'
import { LatchkeyError } from '../../errors.js'
import { bulkInsert, countRows } from '../bulk.js'
import { placeIn } from '../engine.js'
import { catchUpSeqs } from '../events.js'
import { isMigrationTable } from '../migrate.js'
import type { Database, Db, Tx } from '../schema.js'
import type { PostgresOptions } from './dialect.js'
import { createLease, FOLLOWING } from './instances.js'
import { placeBehind } from './numbers.js'
import { withCurrentSchema } from './store.js'

type Table = keyof Database

/** The bound on memory: most rows have some hundred bytes, but a body may have a mebibyte. */
const BATCH = { rows: 1_000, bytes: 4 * 1024 * 1024 }

/**
 * Copies every row of every table from a SQLite database that nobody writes to into PostgreSQL, in one transaction: if
 * it is interrupted, nothing was copied. Returns how many rows of each table were.
 * @throws {LatchkeyError} `store_not_empty`, `store_in_use`, `schema_too_new`; `store_unavailable` if the server fails
 */
export async function copyToPostgres(
  source: Db,
  target: PostgresOptions,
  onProgress: (done: number, total: number) => void,
) {
  const rows: Partial<Record<Table, number>> = {}
  for (const table of await tablesOf(source)) rows[table] = await countRows(source, table)
  const tables = Object.keys(rows) as Table[]
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0)
  let done = 0
  await withCurrentSchema(target, (db) =>
    db.transaction().execute(async (trx) => {
      await assertFree(trx, target)
      // Settings of a daemon that was started on it.
      await sql`truncate ${sql.join(tables.map((table) => sql.table(tableOf(table))))}`.execute(trx)
      for (const table of tables) {
        const insert = bulkInsert(tableOf(table))
        for await (const batch of batchesOf(source, table)) {
          await insert(trx, batch)
          done += batch.length
          onProgress(done, total)
        }
        const copied = await countRows(trx, tableOf(table))
        if (copied !== rows[table])
          throw new Error(`of ${table}, ${copied} rows were copied instead of ${rows[table]}`)
      }
      await continueNumbers(trx, source)
    }),
  )
  return rows
}

const tableOf = (table: Table): Table => (table === 'changes' ? 'change_log' : table)

/** In the order of creation: a table refers only to those before it. */
async function tablesOf(source: Db): Promise<readonly Table[]> {
  const { rows } = await sql<{ name: Table }>`
    select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by rowid`.execute(
    source,
  )
  return rows.map(({ name }) => name).filter((name) => !isMigrationTable(name))
}

async function assertFree(trx: Tx, target: PostgresOptions): Promise<void> {
  const place = placeIn(target.url)
  if ((await trx.selectFrom('events').select('seq').limit(1).execute()).length > 0) {
    const todo = 'name an empty one. If this store was moved there before, start the daemon on it'
    throw new LatchkeyError('store_not_empty', `${place} holds events already: ${todo}.`)
  }
  if (await createLease(trx, target, FOLLOWING).isTaken())
    throw new LatchkeyError('store_in_use', `A daemon uses ${place}: stop it, and run this again.`)
}

async function* batchesOf(source: Db, table: Table): AsyncGenerator<never[]> {
  let batch: object[] = []
  let bytes = 0
  for await (const row of source.selectFrom(table).selectAll().stream()) {
    batch.push(row)
    for (const value of Object.values<unknown>(row))
      if (typeof value === 'string' || Buffer.isBuffer(value)) bytes += value.length
    if (batch.length < BATCH.rows && bytes < BATCH.bytes) continue
    yield batch as never[]
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch as never[]
}

/** Has the database number new rows behind all that there ever were. */
async function continueNumbers(trx: Tx, source: Db): Promise<void> {
  await placeBehind(trx)
  await catchUpSeqs(trx)
  const given = await sql<{ name: string; seq: number }>`select name, seq from sqlite_sequence`.execute(
    source,
  )
  const numbered = await sql<{ table: string; column: string }>`
    select table_name as "table", column_name as "column" from information_schema.columns
    where table_schema = current_schema() and is_identity = 'YES'`.execute(trx)
  for (const { table, column } of numbered.rows) {
    const last = sql`greatest(max(${sql.ref(column)}), ${given.rows.find(({ name }) => name === table)?.seq ?? 0}::bigint)`
    await sql`select setval(pg_get_serial_sequence(${table}, ${column}), ${last}) from ${sql.table(table)}
      having ${last} > 0`.execute(trx)
  }
}
