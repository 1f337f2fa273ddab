import { type Insertable, type RawBuilder, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { type EachRow, engineOf, type Row } from './engine.js'
import type { Database, Db } from './schema.js'

/** Runs for all of these rows, and returns all results, unordered. */
type BulkStatement<Answer> = (db: Db, rows: readonly Row[]) => Promise<Answer[]>

/** A statement for the rows as a list, such as `values (…)`; it has no other parameters. */
export function bulkStatement<Answer = never>(
  write: (list: RawBuilder<unknown>) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  return statementAbout(({ list }) => write(list))
}

/** A statement up to its `where`, or one with that condition anywhere in it. */
type Lookup<Answer> = RawBuilder<Answer> | ((matches: RawBuilder<unknown>) => RawBuilder<Answer>)

/** A statement for the table rows in which these columns have the given values. */
export function bulkLookup<Answer = never>(columns: readonly string[], lookup: Lookup<Answer>) {
  return statementAbout((row) => {
    const matches = row.has(columns)
    return typeof lookup === 'function' ? lookup(matches) : sql<Answer>`${lookup} ${matches}`
  })
}

/** The same within one environment, for each value of this column. */
export function lookupIn<Answer = never>(column: string, lookup: Lookup<Answer>) {
  return lookupAs(column, lookup, (rows) => rows)
}

/** The same, with all rows put into one shape. */
export function lookupAs<Answer, Shaped>(
  column: string,
  lookup: Lookup<Answer>,
  shape: (rows: Answer[]) => Shaped,
) {
  const select = bulkLookup(['environment', column], lookup)
  return async (db: Db, environment: Environment, values: readonly string[]): Promise<Shaped> => {
    const keys = [...new Set(values)].map((value) => [environment, value])
    return shape(await select(db, keys))
  }
}

/** Runs a statement for items of one environment, which comes before the values of each. */
export function inEnvironment<Item, Answer>(statement: BulkStatement<Answer>, valuesOf: (item: Item) => Row) {
  return (db: Db, environment: Environment, items: readonly Item[]): Promise<Answer[]> => {
    const rows = items.map((item) => [environment, ...valuesOf(item)])
    return statement(db, rows)
  }
}

/** A statement written with the parts of one row; it has no other parameters. */
export function statementAbout<Answer = never>(
  write: (row: EachRow) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  return async (db, rows) =>
    rows.length === 0 ? [] : ((await engineOf(db).forEach(db, write, rows)) as Answer[])
}

/**
 * Waits for statements of one transaction that do not need each other's answers: PostgreSQL gets them in one go. All of
 * them end first: after an error, the others must not run once the transaction is rolled back.
 */
export async function pipelined<const Statements extends readonly unknown[]>(statements: Statements) {
  await Promise.allSettled(statements)
  return Promise.all(statements)
}

/** All of these conditions; what was not asked for is undefined. */
export function allOf(...conditions: readonly (RawBuilder<unknown> | undefined)[]): RawBuilder<unknown> {
  const asked = conditions.filter((one) => one !== undefined)
  return sql.join([sql`true`, ...asked], sql` and `)
}

/** How many rows of a table match; all, if no condition is given. */
export async function countRows(db: Db, table: keyof Database, where = sql`true`): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(table)} where ${where}`.execute(db)
  return rows[0]?.count ?? 0
}

/** Inserts rows, all with the columns of the first; `otherwise` is the conflict clause. */
export function bulkInsert<Table extends keyof Database>(
  table: Table,
  otherwise: (columns: readonly string[]) => RawBuilder<unknown> = () => sql``,
) {
  /** By their columns. */
  const statements = new Map<string, BulkStatement<never>>()
  return async (db: Db, rows: readonly Insertable<Database[Table]>[]): Promise<void> => {
    const columns = Object.keys(rows[0] ?? {})
    const names = columns.join()
    const insert =
      statements.get(names) ??
      bulkStatement(
        (list) => sql`insert into ${sql.table(table)} (${refs(columns)}) ${list} ${otherwise(columns)}`,
      )
    statements.set(names, insert)
    const values = rows.map((row) => columns.map((column) => row[column as keyof typeof row] as Row[number]))
    await insert(db, values)
  }
}

/**
 * The same, but an existing row with the same key gets the new values. Each key at most once. Every column that is set
 * is written to all its indexes, even if its value stays the same.
 */
export function bulkUpsert<Table extends keyof Database>(
  table: Table,
  key: readonly (keyof Database[Table] & string)[],
) {
  return bulkInsert(table, (columns) => {
    const set = columns
      .filter((column) => !key.some((one) => one === column))
      .map((column) => sql`${sql.ref(column)} = excluded.${sql.ref(column)}`)
    return sql`on conflict (${refs(key)}) do update set ${sql.join(set)}`
  })
}

function refs(columns: readonly string[]): RawBuilder<unknown> {
  return sql.join(columns.map((column) => sql.ref(column)))
}
