import type { DialectAdapter, Kysely, RawBuilder } from 'kysely'
import type { ColumnTypes } from '../../migrations/column-types.js'
import type { Database } from './schema.js'

export type Row = readonly (string | number | Buffer | null)[]

/**
 * What differs between databases. It is the adapter of every connection, so queries have it wherever they run, also in
 * a transaction. SQLite is the only one so far.
 */
export interface Engine extends DialectAdapter {
  /** Column types for migrations. */
  readonly columnTypes: ColumnTypes
  /** Runs one statement for each row, in order, and returns the results of all. */
  forEach(db: Kysely<Database>, statement: string, rows: readonly Row[]): Promise<unknown[]>
  /** Whether a column contains a text, or bytes. */
  contains(column: string, part: string | Buffer): RawBuilder<boolean>
  /**
   * The defects of the database as a whole, one line each; none if it is intact. Reads all of it.
   * `thorough` also compares every index with its table, which takes several times as long.
   */
  findDamage(db: Kysely<Database>, options: { readonly thorough: boolean }): Promise<readonly string[]>
  /** Removes overwritten data from the database's log. Best effort: a reader of the log keeps it. */
  emptyLog(db: Kysely<Database>): Promise<void>
}

export function engineOf(db: Kysely<Database>): Engine {
  return db.getExecutor().adapter as Engine
}

/** Whether nothing was stored because the database can't be written now: the sender may try again. */
export function isStoreBusy(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(BUSY|LOCKED|FULL|READONLY|CANTOPEN)(_|$)/)
}

/** Whether the database or its disk can't be trusted any more: stop acknowledging, and end. */
export function isStoreBroken(error: unknown): boolean {
  return hasCode(error, /^(store_replaced|SQLITE_(IOERR|CORRUPT|NOTADB)(_.*)?)$/)
}

/** Compares only codes, its own or its cause's: an error from another thread has lost its class. */
export function hasCode(error: unknown, pattern: RegExp): boolean {
  if (!(error instanceof Error)) return false
  return ('code' in error && pattern.test(String(error.code))) || hasCode(error.cause, pattern)
}
