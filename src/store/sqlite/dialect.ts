import { setTimeout as wait } from 'node:timers/promises'
import type Sqlite from 'better-sqlite3'
import {
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  type RawBuilder,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
  type TransactionSettings,
} from 'kysely'
import { type Engine, isStoreBusy, type Row, type RowStatement } from '../engine.js'
import type { Database, Db } from '../schema.js'
import { type Access, openConnection } from './connection.js'

/** Preparing a statement costs as much as running it: batches repeat the same statements. */
const STATEMENTS_KEPT = 256

/** A query takes milliseconds; a longer reader, such as a backup, keeps the log. */
const EMPTY_ATTEMPTS = 40
const EMPTY_WAIT_MS = 50

/** A damaged file has either few faults or very many. */
const FAULTS_AT_MOST = 20

/**
 * Opens the database, creating a missing folder and file; creates nothing when only reading.
 *
 * A commit is durable when it returns: write-ahead log, synced at every commit; both settings are checked.
 * A reader works beside a running daemon and on a stopped database.
 *
 * @param errorFor makes the error for a failed statement; if omitted, SQLite's own error is thrown
 * @throws {LatchkeyError} `store_missing` if there is no file when only reading; `store_unavailable`
 * if the file can't be written durably. SQLite's own errors pass through.
 */
export function openDatabase(file: string, access: Access, errorFor?: ErrorFor): Db {
  return new OpenDatabase(openConnection(file, access), errorFor)
}

type ErrorFor = (error: unknown) => unknown

class OpenDatabase extends Kysely<Database> {
  readonly #sqlite: Sqlite.Database

  constructor(sqlite: Sqlite.Database, errorFor?: ErrorFor) {
    const prepare = keepingStatements(sqlite, errorFor)
    super({
      dialect: {
        createAdapter: () => new SqliteEngine(prepare),
        createDriver: () => new ImmediateDriver(sqlite, prepare),
        createIntrospector: (db) => new SqliteIntrospector(db),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    })
    this.#sqlite = sqlite
  }

  /** Kysely alone would leave the file open if no query ever ran. */
  override async destroy(): Promise<void> {
    await super.destroy()
    this.#sqlite.close()
  }
}

type Statement = Pick<Sqlite.Statement, 'reader' | 'all' | 'run' | 'iterate'>
type Prepare = (text: string) => Statement

function keepingStatements(sqlite: Sqlite.Database, errorFor?: ErrorFor): Prepare {
  const kept = new Map<string, Statement>()
  const prepare =
    errorFor === undefined ? (text: string) => sqlite.prepare(text) : guardedReads(sqlite, errorFor)
  return (text) => {
    const known = kept.get(text)
    if (known !== undefined) return known
    const statement = prepare(text)
    if (kept.size >= STATEMENTS_KEPT) kept.clear()
    kept.set(text, statement)
    return statement
  }
}

/** Wraps every statement of a reader, so that all failures become the same error. */
function guardedReads(sqlite: Sqlite.Database, errorFor: ErrorFor): Prepare {
  function orError<Answer>(call: () => Answer): Answer {
    try {
      return call()
    } catch (error) {
      throw errorFor(error)
    }
  }
  return (text) => {
    const statement = orError(() => sqlite.prepare(text))
    return {
      reader: statement.reader,
      all: (...values) => orError(() => statement.all(...values)),
      run: (...values) => orError(() => statement.run(...values)),
      iterate: (...values) => orError(() => statement.iterate(...values)),
    }
  }
}

class SqliteEngine extends SqliteAdapter implements Engine {
  readonly isRemote = false
  readonly changeLog = 'changes'
  readonly #prepare: Prepare
  readonly #texts = new WeakMap<RowStatement, string>()

  constructor(prepare: Prepare) {
    super()
    this.#prepare = prepare
  }

  /** Strict tables refuse a value of the wrong type, which SQLite would otherwise store. */
  readonly columnTypes = {
    isShared: false,
    text: sql`text`,
    integer: sql`integer`,
    bytes: sql`blob`,
    sequence: sql`integer primary key autoincrement`,
    rowNumber: sql`integer primary key`,
    tableOptions: sql`strict`,
    keyedTableOptions: sql`strict, without rowid`,
  }

  /** Lets the migrator put all pending migrations into one transaction, which SQLite can roll back whole. */
  override get supportsTransactionalDdl(): boolean {
    return true
  }

  /** One transaction writes at a time. */
  async lock() {}

  drawSeqs(): null {
    return null
  }

  /**
   * Row by row: a statement is a function call here. One statement for many rows would keep a journal of its own, in a
   * file, with every page that it changes (the statements of a batch took twice as long).
   */
  async forEach(db: Db, statement: RowStatement, rows: readonly Row[]): Promise<unknown[]> {
    const text = this.#texts.get(statement) ?? textOf(db, statement, rows)
    this.#texts.set(statement, text)
    if (db.isTransaction) return this.#runEach(text, rows)
    // Alone, the connection may be in the middle of somebody else's transaction, and each row would take the locks.
    const own = rows.length > 1 ? db.transaction() : db.connection()
    return own.execute(async () => this.#runEach(text, rows))
  }

  #runEach(text: string, rows: readonly Row[]): unknown[] {
    const statement = this.#prepare(text)
    if (!statement.reader) {
      for (const row of rows) statement.run(row)
      return []
    }
    const answers: unknown[] = []
    for (const row of rows) for (const answer of statement.all(row)) answers.push(answer)
    return answers
  }

  isOneOf(column: string, texts: readonly string[]): RawBuilder<boolean> {
    return sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(texts)}))`
  }

  contains(column: string, part: string | Buffer): RawBuilder<boolean> {
    return sql`instr(${sql.ref(column)}, ${part}) > 0`
  }

  fieldIn(column: string, field: string): RawBuilder<string> {
    return sql`${sql.ref(column)} -> ${sql.lit(field)}`
  }

  async emptyLog(db: Db): Promise<void> {
    for (let attempt = 0; attempt < EMPTY_ATTEMPTS; attempt += 1) {
      if (attempt > 0) await wait(EMPTY_WAIT_MS)
      try {
        const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(TRUNCATE)`.execute(db)
        if (rows[0]?.busy === 0) return
      } catch (error) {
        if (!isStoreBusy(error)) throw error
      }
    }
  }
}

/**
 * The defects of the database as a whole, one line each; none if it is intact. Reads all of it.
 * @param thorough also compares every index with its table, which takes several times as long
 */
export async function findDamage(db: Db, thorough: boolean): Promise<readonly string[]> {
  const check = sql.raw(thorough ? 'integrity_check' : 'quick_check')
  const { rows } = await sql<object>`pragma ${check}(${sql.lit(FAULTS_AT_MOST)})`.execute(db)
  const found = rows.flatMap((row) => Object.values(row)).flatMap((text: string) => text.split('\n'))
  return found.filter((line) => line !== 'ok')
}

function textOf(db: Db, statement: RowStatement, [first = []]: readonly Row[]): string {
  const values = first.map((value) => sql`${value}`)
  const row = {
    values,
    list: sql`values (${sql.join(values)})`,
    from: sql``,
    has: (columns: readonly string[]) =>
      sql.join(
        columns.map((column, i) => sql`${sql.ref(column)} = ${values[i]}`),
        sql` and `,
      ),
  }
  return statement(row).compile(db).sql
}

class ImmediateDriver extends SqliteDriver {
  readonly #sqlite: Sqlite.Database
  #onlyReads = false

  constructor(sqlite: Sqlite.Database, prepare: Prepare) {
    super({ database: { prepare: prepare as SqliteDatabase['prepare'], close: () => sqlite.close() } })
    this.#sqlite = sqlite
  }

  /** Takes the write lock at once: a read that turns into a write later fails without waiting. A reader takes none. */
  override async beginTransaction(
    connection: DatabaseConnection,
    { accessMode }: TransactionSettings = {},
  ): Promise<void> {
    this.#onlyReads = accessMode === 'read only'
    if (this.#onlyReads) this.#sqlite.pragma('query_only = on')
    await connection.executeQuery(CompiledQuery.raw(this.#onlyReads ? 'begin' : 'begin immediate'))
  }

  override async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await super.commitTransaction(connection)
    this.#allowWrites()
  }

  /** A full disk and the like roll back by themselves; a second rollback would hide the error behind its own. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#sqlite.inTransaction) await super.rollbackTransaction(connection)
    this.#allowWrites()
  }

  #allowWrites(): void {
    if (this.#onlyReads) this.#sqlite.pragma('query_only = off')
    this.#onlyReads = false
  }
}
