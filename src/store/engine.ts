import type { DialectAdapter, Kysely, RawBuilder } from 'kysely'
import type { ColumnTypes } from '../../migrations/column-types.js'
import type { Database } from './schema.js'

export type Row = readonly (string | number | Buffer | null)[]

/**
 * What a database does in its own way. It is the adapter of every connection, so that a query has it wherever it runs, in
 * a transaction too. SQLite is the only one so far.
 */
export interface Engine extends DialectAdapter {
  /** What migrations make tables of. */
  readonly columnTypes: ColumnTypes
  /** Runs one statement for each of the rows, in their order, and returns what it returns for all of them. */
  forEach(db: Kysely<Database>, statement: string, rows: readonly Row[]): Promise<unknown[]>
  /** Whether a column holds a text, or bytes, somewhere. */
  contains(column: string, part: string | Buffer): RawBuilder<boolean>
  /**
   * What is wrong with the database as a whole, a line each; none where it is sound. Reads all of it.
   * `thorough` compares every index with its table too, which takes several times as long.
   */
  findDamage(db: Kysely<Database>, options: { readonly thorough: boolean }): Promise<readonly string[]>
  /** Leaves nothing of what was overwritten in the database's log. Best effort: a reader of the log keeps it. */
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

/** By its code, or its cause's, alone: an error that comes from another thread is of no class any more. */
export function hasCode(error: unknown, pattern: RegExp): boolean {
  if (!(error instanceof Error)) return false
  return ('code' in error && pattern.test(String(error.code))) || hasCode(error.cause, pattern)
}
