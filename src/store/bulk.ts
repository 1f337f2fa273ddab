import { type CompiledQuery, type Kysely, type RawBuilder, type SelectType, sql } from 'kysely'
import { runEachOf } from './dialect.js'
import type { Database } from './schema.js'

type Value = string | number | Buffer | null
export type Row = readonly Value[]

/** Answers what the statement returns for all rows together, in no order. */
export type BulkStatement<Answer> = (db: Kysely<Database>, rows: readonly Row[]) => Promise<Answer[]>

/**
 * Numbers of rows that a statement is written for where rows are told together. Composing and preparing one takes
 * longer than running it, so that every number of rows is made of these few.
 */
const SIZES = [64, 16, 4, 1] as const

/**
 * A statement about any number of rows of equal length, told as `values (…), (…)`. It holds no other parameter,
 * and each row stands for itself: they are told in parts.
 */
export function bulkStatement<Answer = never>(
  write: (rows: RawBuilder<unknown>) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  return statementAbout((rows) => write(valuesOf(rows)))
}

/** A statement about the rows of a table in which these columns are as told. */
export function bulkLookup<Answer = never>(
  columns: readonly string[],
  write: (isTold: RawBuilder<unknown>) => RawBuilder<Answer>,
): BulkStatement<Answer> {
  const refs = columns.map((column) => sql.ref(column))
  return statementAbout((rows) => {
    const [only] = rows
    // Of one row plainly: a list of one is made a table first, which takes longer than finding the row.
    if (only === undefined || rows.length > 1) return write(sql`(${sql.join(refs)}) in (${valuesOf(rows)})`)
    return write(
      sql.join(
        refs.map((ref, i) => sql`${ref} = ${only[i]}`),
        sql` and `,
      ),
    )
  })
}

function statementAbout<Answer>(write: (rows: readonly Row[]) => RawBuilder<Answer>): BulkStatement<Answer> {
  const compiled = new WeakMap<object, Map<number, CompiledQuery<Answer>>>()
  const compiledFor = (db: Kysely<Database>, [first = []]: readonly Row[], size: number) => {
    const { adapter } = db.getExecutor()
    const sizes = compiled.get(adapter) ?? new Map<number, CompiledQuery<Answer>>()
    compiled.set(adapter, sizes)
    const query = sizes.get(size) ?? write(Array<Row>(size).fill(first)).compile(db)
    sizes.set(size, query)
    return query
  }
  return async (db, rows) => {
    if (rows.length === 0) return []
    const runEach = runEachOf(db)
    if (runEach !== null) return runEach(compiledFor(db, rows, 1).sql, rows) as Answer[]
    const answers: Answer[] = []
    let told = 0
    for (const size of SIZES) {
      for (; rows.length - told >= size; told += size) {
        const part = rows.slice(told, told + size)
        const query: CompiledQuery<Answer> = { ...compiledFor(db, part, size), parameters: part.flat() }
        for (const answer of (await db.executeQuery(query)).rows) answers.push(answer)
      }
    }
    return answers
  }
}

/** Inserts rows of a table, all of these columns each; `otherwise` tells what to do with one that is there already. */
export function bulkInsert<Table extends keyof Database, Column extends ColumnOf<Table>>(
  table: Table,
  columns: readonly Column[],
  otherwise: RawBuilder<unknown> = sql``,
): (db: Kysely<Database>, rows: readonly InsertedRow<Table, Column>[]) => Promise<void> {
  const names = sql.join(columns.map((column) => sql.ref(column)))
  const insert = bulkStatement((rows) => sql`insert into ${sql.table(table)} (${names}) ${rows} ${otherwise}`)
  return async (db, rows) => {
    await insert(
      db,
      rows.map((row) => columns.map((column) => row[column] as Value)),
    )
  }
}

/**
 * The same; a row whose key is there already takes its place, at least in the columns `updating`. Each key at most
 * once. What is set is written to every index that holds it, even where it stays the same.
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
  const told = updating.map((column) => sql`${sql.ref(column)} = excluded.${sql.ref(column)}`)
  const names = sql.join(key.map((column) => sql.ref(column)))
  return bulkInsert(table, [...key, ...columns], sql`on conflict (${names}) do update set ${sql.join(told)}`)
}

type ColumnOf<Table extends keyof Database> = keyof Database[Table] & string
type InsertedRow<Table extends keyof Database, Column extends ColumnOf<Table>> = {
  readonly [Name in Column]: SelectType<Database[Table][Name]>
}

function valuesOf(rows: readonly Row[]): RawBuilder<unknown> {
  return sql`values ${sql.join(rows.map((row) => sql`(${sql.join(row)})`))}`
}
