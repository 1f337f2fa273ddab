import type Sqlite from 'better-sqlite3'
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  Kysely,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import type { ColumnTypes } from '../../../migrations/column-types.js'
import type { Database } from '../schema.js'
import { openConnection } from './connection.js'

/** Preparing a statement costs as much as running it: those of a batch are written alike and come again. */
const STATEMENTS_KEPT = 256

/** Strict tables refuse a value of the wrong type, where SQLite would otherwise store whatever comes. */
export const COLUMN_TYPES: ColumnTypes = {
  text: sql`text`,
  integer: sql`integer`,
  bytes: sql`blob`,
  sequence: sql`integer primary key autoincrement`,
  rowNumber: sql`integer primary key`,
  tableOptions: sql`strict`,
  keyedTableOptions: sql`strict, without rowid`,
}

/**
 * Opens the database, making folder and file if they are missing; nothing is created when only reading.
 *
 * A commit is durable when it returns: write-ahead log, synced at every commit, both read back.
 * A reader works beside a running daemon and on its stopped database.
 *
 * @throws {LatchkeyError} `store_missing` when only reading and there is no file; `store_unavailable`
 * where the file can't be written durably. SQLite's own errors pass through.
 */
export function openDatabase(file: string, access: { readonly readOnly: boolean }): Kysely<Database> {
  return new OpenDatabase(openConnection(file, access))
}

function createDialect(sqlite: Sqlite.Database): Dialect {
  const prepare = keepingStatements(sqlite)
  return {
    createAdapter: () => new LocalAdapter(prepare),
    createDriver: () => new ImmediateDriver(sqlite, prepare),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

class OpenDatabase extends Kysely<Database> {
  readonly #sqlite: Sqlite.Database

  constructor(sqlite: Sqlite.Database) {
    super({ dialect: createDialect(sqlite) })
    this.#sqlite = sqlite
  }

  /** Kysely alone would leave the file open where no query ever ran. */
  override async destroy(): Promise<void> {
    await super.destroy()
    this.#sqlite.close()
  }
}

type Prepare = (text: string) => Sqlite.Statement

class LocalAdapter extends SqliteAdapter {
  readonly #prepare: Prepare

  constructor(prepare: Prepare) {
    super()
    this.#prepare = prepare
  }

  /** Lets the migrator put all pending migrations into one transaction, which SQLite can roll back whole. */
  override get supportsTransactionalDdl(): boolean {
    return true
  }

  runEach(text: string, rows: readonly (readonly unknown[])[]): unknown[] {
    const statement = this.#prepare(text)
    if (!statement.reader) {
      for (const row of rows) statement.run(row)
      return []
    }
    const answers: unknown[] = []
    for (const row of rows) for (const answer of statement.all(row)) answers.push(answer)
    return answers
  }
}

/**
 * Runs one statement for each of the rows, in their order, and answers what it returns for all of them.
 *
 * To reach this database is a call. Told many rows at once, it would keep a journal of its own for each such
 * statement, in a file, with every page that the statement changes (the statements of a batch took twice as long).
 */
export async function forEach(
  db: Kysely<Database>,
  text: string,
  rows: readonly (readonly unknown[])[],
): Promise<unknown[]> {
  const adapter = db.getExecutor().adapter as LocalAdapter
  // Outside a transaction the connection may be in the middle of somebody else's.
  return db.isTransaction
    ? adapter.runEach(text, rows)
    : db.connection().execute(async () => adapter.runEach(text, rows))
}

class ImmediateDriver extends SqliteDriver {
  readonly #sqlite: Sqlite.Database

  constructor(sqlite: Sqlite.Database, prepare: Prepare) {
    super({ database: { prepare: prepare as SqliteDatabase['prepare'], close: () => sqlite.close() } })
    this.#sqlite = sqlite
  }

  /** Takes the write lock at once: a read that turns into a write later fails without waiting. A reader takes none. */
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  /** A full disk and the like roll back by themselves; a second rollback would hide the error behind its own. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#sqlite.inTransaction) await super.rollbackTransaction(connection)
  }
}

/** Prepares each text once, and forgets the one that was prepared first where there are too many. */
function keepingStatements(sqlite: Sqlite.Database): Prepare {
  const kept = new Map<string, Sqlite.Statement>()
  return (text) => {
    const known = kept.get(text)
    if (known !== undefined) return known
    const statement = sqlite.prepare(text)
    const [oldest] = kept.keys()
    if (kept.size >= STATEMENTS_KEPT && oldest !== undefined) kept.delete(oldest)
    kept.set(text, statement)
    return statement
  }
}
