import { CompiledQuery, type DialectAdapter, type RawBuilder } from 'kysely'
import type { ColumnTypes } from '../../migrations/column-types.js'
import { LatchkeyError } from '../errors.js'
import type { Db, Tx } from './schema.js'

export type Row = readonly (string | number | Buffer | null)[]

/** One of many rows, in a statement that is written once for all of them. */
export interface EachRow {
  /** Its values, in order. */
  readonly values: readonly RawBuilder<unknown>[]
  /** The row as a list of rows: `values (…)`. */
  readonly list: RawBuilder<unknown>
  /** Follows what an update sets to its values. */
  readonly from: RawBuilder<unknown>
  /** Whether these columns have its values. */
  has(columns: readonly string[]): RawBuilder<unknown>
}

export type RowStatement = (row: EachRow) => RawBuilder<unknown>

/**
 * What differs between databases. It is the adapter of every connection, so queries have it wherever they run, also in
 * a transaction.
 */
export interface Engine extends DialectAdapter {
  /**
   * Whether it is a server: each answer has to be waited for, so all that may be needed is asked for at once; and other
   * processes may write at the same time.
   */
  readonly isRemote: boolean
  /**
   * The table of all committed changes. Where transactions write beside each other, `changes` lacks those that a change
   * which is still being written may come before.
   */
  readonly changeLog: 'changes' | 'change_log'
  /** Column types for migrations. */
  readonly columnTypes: ColumnTypes
  /** Waits until no other transaction has locked any of these. Only in a transaction beside others. */
  lock(trx: Tx, names: readonly string[]): Promise<void>
  /** Draws so many rising numbers for events; null: the writer numbers them itself, since nobody else does. */
  drawSeqs(trx: Tx, count: number): Promise<readonly number[]> | null
  /** Runs a statement for all these rows, and returns all results, unordered. */
  forEach(db: Db, statement: RowStatement, rows: readonly Row[]): Promise<unknown[]>
  /** Whether a column has one of these texts, for many at once. */
  isOneOf(column: string, texts: readonly string[]): RawBuilder<boolean>
  /** Whether a column contains a text, or bytes. */
  contains(column: string, part: string | Buffer): RawBuilder<boolean>
  /** A field of a column of JSON objects, as JSON text. */
  fieldIn(column: string, field: string): RawBuilder<string>
  /** Removes overwritten data from the database's log. Best effort: a reader of the log keeps it. Nothing, where
   * there is none that an erasure would leave data in. */
  emptyLog(db: Db): Promise<void>
}

/** The address of a PostgreSQL database as users may see it: without user and password. */
export function placeIn(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

export function engineOf(db: Db): Engine {
  return db.getExecutor().adapter as Engine
}

/** One that a server keeps prepared under its name, so that it is planned once. */
export interface NamedQuery extends CompiledQuery {
  readonly name?: string
}

/** A statement that is always the same. */
export function fixedQuery(name: string, text: string): NamedQuery {
  return { ...CompiledQuery.raw(text), name }
}

/** The rows. In a transaction, the next statement may be sent before they come. */
export async function ask<Row>(db: Db, query: CompiledQuery): Promise<Row[]> {
  if (!db.isTransaction) return (await db.executeQuery<Row>(query)).rows
  const sent = await db.getExecutor().provideConnection(async (connection) => ({
    answer: connection.executeQuery<Row>(query),
  }))
  return (await sent.answer).rows
}

/**
 * A transaction that may write what others under way don't: it locks what it reads for that. Where one process writes, it
 * is alone.
 */
export function beside<T>(db: Db, work: (trx: Tx) => Promise<T>): Promise<T> {
  return db.transaction().setIsolationLevel('read committed').execute(work)
}

/** A transaction while no other writes. */
export function alone<T>(db: Db, work: (trx: Tx) => Promise<T>): Promise<T> {
  return db.transaction().execute(work)
}

/**
 * Reads one state of the database, whatever is committed meanwhile. Nothing can be written there, and no write waits for
 * it. It begins with its first statement.
 */
export function inSnapshot<T>(db: Db, work: (reader: Db) => Promise<T>): Promise<T> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(work)
}

/** Whether nothing was stored because the database can't be written now: the sender may try again. */
export function isStoreBusy(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(BUSY|LOCKED|FULL|READONLY|CANTOPEN)(_|$)/) || hasCode(error, POSTGRES_BUSY)
}

/** Unreachable, out of something, or shutting down; read-only; a deadlock, a conflict, or too long a wait. */
const POSTGRES_BUSY = /^(POSTGRES_UNREACHABLE|(08|53|57)...|25006|25P03|40...|55P03)$/

/** Whether it met another transaction, and may succeed at once if it is run again. */
export function hasMetAnother(error: unknown): boolean {
  return hasCode(error, /^(23505|40...)$/)
}

/** Whether PostgreSQL has failed, or the connection to it. Its own codes have a digit: `EPIPE` is the system's. */
export function isOfPostgres(error: unknown): boolean {
  return hasCode(error, /^(POSTGRES_UNREACHABLE|(?=.*[0-9])[0-9A-Z]{5})$/)
}

/** Whether the database or its disk can't be trusted any more: stop acknowledging, and end. */
export function isStoreBroken(error: unknown): boolean {
  return hasCode(error, /^(store_replaced|SQLITE_(IOERR|CORRUPT|NOTADB)(_.*)?)$/)
}

/** Whether it is an error of SQLite or PostgreSQL. */
export function isOfStore(error: unknown): boolean {
  return hasCode(error, /^SQLITE_/) || isOfPostgres(error)
}

/** Compares only codes, its own or its cause's: an error from another thread has lost its class. */
export function hasCode(error: unknown, pattern: RegExp): boolean {
  if (!(error instanceof Error)) return false
  return ('code' in error && pattern.test(String(error.code))) || hasCode(error.cause, pattern)
}

/** The error for a store that can't be read or written now; the sender may try again. */
export function unavailable(what: 'read' | 'written', cause: unknown): LatchkeyError {
  return new LatchkeyError('store_unavailable', `The store cannot be ${what} now.`, { cause })
}

/**
 * Wraps the calls of a writer: what keeps it from writing now becomes `store_unavailable`, and what breaks the store is
 * reported.
 * @param harmed asked before each call
 */
export function guardedWriter<Writer extends { close(): Promise<void> }>(
  writer: Writer,
  onBroken: (error: unknown) => void,
  harmed: () => LatchkeyError | null = () => null,
): Writer {
  const guard = (name: string, call: (...args: unknown[]) => Promise<unknown>) => {
    return async (...args: unknown[]) => {
      try {
        const harm = harmed()
        if (harm !== null) throw harm
        return await call(...args)
      } catch (error) {
        if (isStoreBroken(error)) onBroken(error)
        // The caller retries the batch.
        else if (isStoreBusy(error) && name !== 'writeBatch') throw unavailable('written', error)
        throw error
      }
    }
  }
  const calls = Object.entries(writer).map(([name, call]) => [name, guard(name, call)])
  return { ...Object.fromEntries(calls), close: writer.close }
}
