import { type RawBuilder, sql } from 'kysely'

/** SQLite takes at most 32,766 bound values in one statement, PostgreSQL 65,535; some are left for the rest of it. */
const MAX_BOUND_VALUES = 32_000

/** Cuts rows into statements that each bind at most as many values as every database takes. */
export function* chunkRows<Row>(rows: readonly Row[], valuesPerRow: number): Generator<readonly Row[]> {
  const size = Math.floor(MAX_BOUND_VALUES / valuesPerRow)
  for (let start = 0; start < rows.length; start += size) yield rows.slice(start, start + size)
}

/** `values (?, ?), (?, ?)`: rows to look up or to join by, as every database can read them. */
export function valuesOf(rows: readonly (readonly (string | number | null)[])[]): RawBuilder<unknown> {
  return sql`values ${sql.join(rows.map((row) => sql`(${sql.join(row)})`))}`
}
