import type { Kysely } from 'kysely'
import type { PostgresOptions } from './postgres/dialect.js'
import type { Database } from './schema.js'
import { openDatabase } from './sqlite/dialect.js'

/** Where a store is: a file, unless there are options for PostgreSQL. */
export interface StorePlace {
  readonly file: string
  readonly postgres?: PostgresOptions | undefined
}

/** What users call it: without user and password. */
export function placeOfStore({ file, postgres }: StorePlace): string {
  return postgres === undefined ? file : placeIn(postgres.url)
}

/** The address as users may see it, without user and password. */
export function placeIn(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/**
 * Opens a store to read it, whether or not a daemon serves it: takes no lock, migrates nothing, and makes no file.
 * @param errorFor makes the error for a failed statement; if omitted, it is the database's own
 * @throws {LatchkeyError} `store_missing`; SQLite's own errors pass through
 */
export async function openToRead(
  { file, postgres }: StorePlace,
  errorFor?: (error: unknown) => unknown,
): Promise<Kysely<Database>> {
  if (postgres === undefined) return openDatabase(file, { readOnly: true, atRest: true }, errorFor)
  const { openPostgres } = await import('./postgres/dialect.js')
  return openPostgres(postgres, 'read', errorFor && { errorFor })
}
