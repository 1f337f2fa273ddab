import { type RawBuilder, type SelectType, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { engineOf, type Row } from './engine.js'
import type { Database, Db } from './schema.js'

/** Runs once per row, in order, and returns the results of all. */
type BulkStatement<Answer> = (db: Db, rows: readonly Row[]) => Promise<Answer[]>

/** A statement for one row, with its values as parameters in order. */
export function rowStatement<Answer = never>(write: (row: Row) => RawBuilder<Answer>): BulkStatement<Answer> {
  return statementAbout(write)
}

/** A statement for one row as `values (…)`; it has no other parameters. */
export function bulkStatement<Answer = never>(
  write: (row: RawBuilder<unknown>) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  return statementAbout((row) => write(sql`values (${sql.join(row)})`))
}

/** A statement for the table rows in which these columns have the given values. */
export function bulkLookup<Answer = never>(
  columns: readonly string[],
  write: (matches: RawBuilder<unknown>) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  return statementAbout((row) =>
    write(
      sql.join(
        columns.map((column, i) => sql`${sql.ref(column)} = ${row[i]}`),
        sql` and `,
      ),
    ),
  )
}

/** The same within one environment, for each value of this column. */
export function lookupIn<Answer = never>(
  column: string,
  write: (matches: RawBuilder<unknown>) => RawBuilder<Answer>,
): (db: Db, environment: Environment, values: readonly string[]) => Promise<Answer[]> {
  const statement = bulkLookup(['environment', column], write)
  return (db, environment, values) =>
    statement(
      db,
      values.map((value) => [environment, value]),
    )
}

function statementAbout<Answer>(write: (row: Row) => RawBuilder<Answer>): BulkStatement<Answer> {
  const texts = new WeakMap<object, string>()
  return async (db, rows) => {
    const [first] = rows
    if (first === undefined) return []
    const engine = engineOf(db)
    const text = texts.get(engine) ?? write(first).compile(db).sql
    texts.set(engine, text)
    return (await engine.forEach(db, text, rows)) as Answer[]
  }
}

/** Inserts rows with all of these columns; `otherwise` is the conflict clause. */
export function bulkInsert<Table extends keyof Database, Column extends ColumnOf<Table>>(
  table: Table,
  columns: readonly Column[],
  otherwise: RawBuilder<unknown> = sql``,
): (db: Db, rows: readonly InsertedRow<Table, Column>[]) => Promise<void> {
  const names = sql.join(columns.map((column) => sql.ref(column)))
  const insert = bulkStatement((row) => sql`insert into ${sql.table(table)} (${names}) ${row} ${otherwise}`)
  return async (db, rows) => {
    await insert(
      db,
      rows.map((row) => columns.map((column) => row[column] as Row[number])),
    )
  }
}

/**
 * The same, but an existing row with the same key gets the new values of the columns `updating`. Each key at most
 * once. Every column that is set is written to all its indexes, even if its value stays the same.
 */
export function bulkUpsert<
  Table extends keyof Database,
  Key extends ColumnOf<Table>,
  Column extends ColumnOf<Table>,
>(
  table: Table,
  key: readonly Key[],
  columns: readonly Column[],
  { updating = columns }: { readonly updating?: readonly Column[] } = {},
): (db: Db, rows: readonly InsertedRow<Table, Key | Column>[]) => Promise<void> {
  const assignments = updating.map((column) => sql`${sql.ref(column)} = excluded.${sql.ref(column)}`)
  const names = sql.join(key.map((column) => sql.ref(column)))
  return bulkInsert(
    table,
    [...key, ...columns],
    sql`on conflict (${names}) do update set ${sql.join(assignments)}`,
  )
}

type ColumnOf<Table extends keyof Database> = keyof Database[Table] & string
type InsertedRow<Table extends keyof Database, Column extends ColumnOf<Table>> = {
  readonly [Name in Column]: SelectType<Database[Table][Name]>
}
