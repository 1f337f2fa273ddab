import { type Kysely, type RawBuilder, type SelectType, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { type EachRow, engineOf, type Row } from './engine.js'
import type { Database } from './schema.js'

/** Runs for all of these rows, and returns all results, unordered. */
type BulkStatement<Answer> = (db: Kysely<Database>, rows: readonly Row[]) => Promise<Answer[]>

/** An update of table rows from the values of each row, which `from` brings in: between `set …` and `where …`. */
export function bulkUpdate<Answer = never>(
  write: (values: EachRow['values'], from: RawBuilder<unknown>) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  return statementAbout(({ values, from }) => write(values, from))
}

/** A statement for the rows as a list, such as `values (…)`; it has no other parameters. */
export function bulkStatement<Answer = never>(
  write: (list: RawBuilder<unknown>) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  return statementAbout(({ list }) => write(list))
}

/** A statement for the table rows in which these columns have the given values. */
export function bulkLookup<Answer = never>(
  columns: readonly string[],
  write: (matches: RawBuilder<unknown>) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  return statementAbout((row) => write(row.has(columns)))
}

/** The same within one environment, for each value of this column. */
export function lookupIn<Answer = never>(
  column: string,
  write: (matches: RawBuilder<unknown>) => RawBuilder<Answer>,
): (db: Kysely<Database>, environment: Environment, values: readonly string[]) => Promise<Answer[]> {
  const statement = bulkLookup(['environment', column], write)
  return (db, environment, values) =>
    statement(
      db,
      values.map((value) => [environment, value]),
    )
}

function statementAbout<Answer>(write: (row: EachRow) => RawBuilder<Answer>): BulkStatement<Answer> {
  return async (db, rows) =>
    rows.length === 0 ? [] : ((await engineOf(db).forEach(db, write, rows)) as Answer[])
}

/** Inserts rows with all of these columns; `otherwise` is the conflict clause. */
export function bulkInsert<Table extends keyof Database, Column extends ColumnOf<Table>>(
  table: Table,
  columns: readonly Column[],
  otherwise: RawBuilder<unknown> = sql``,
): (db: Kysely<Database>, rows: readonly InsertedRow<Table, Column>[]) => Promise<void> {
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
): (db: Kysely<Database>, rows: readonly InsertedRow<Table, Key | Column>[]) => Promise<void> {
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
