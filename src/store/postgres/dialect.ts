import { type CompiledQuery, Kysely, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import pg from 'pg'
import type { Database, Db } from '../schema.js'
import { connectionOf } from './connection.js'
import { PostgresEngine } from './engine.js'
import { BY_KEY, PoolDriver, type Purpose, type TransactionOptions } from './transactions.js'

/** How to reach a database, and how long to wait for it. */
export interface PostgresOptions {
  /** Contains a password: never logged. */
  readonly url: string
  /** How many connections one process opens, at most. */
  readonly connections: number
  /** How many of them are for writing, `WRITERS` if omitted. */
  readonly writers?: number
  /** No statement may take longer. */
  readonly statementTimeoutMs: number
}

/** Its statements may take long; but a process that stops within a transaction must not hold up all others for ever. */
const STARTING = { connectionTimeoutMillis: 15_000, idle_in_transaction_session_timeout: 60_000 }

/** Shorter, so that a delivery is tried again before its sender gives up. */
const LOCK_TIMEOUT_MS = 2_000

/** No sender waits for the work that a lease is for, and it should outlast that another process stops. */
const HOLDER_LOCK_TIMEOUT_MS = 10_000

/**
 * A process that stops within a transaction holds up all others, and a fold takes milliseconds. So short that what the
 * others have to store then waits once more for the lock, gets it, and is answered in time.
 */
const IDLE_IN_TRANSACTION_MS = 3_000

/** How many connections of a process are for writing, if nothing else is said. */
export const WRITERS = 4

/** Those of leases and their holders, and one that listens. */
const OTHER_CONNECTIONS = 4

/** Lost connections are noticed after some 20 s, on both sides. */
const KEEPALIVE = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2'

const OPTIONS: Readonly<Record<Purpose, string>> = {
  read: '-c default_transaction_read_only=on',
  // Batches find rows by their keys. A plan made while the tables were small would go on reading them whole.
  write: BY_KEY.map((name) => `-c ${name}=off`).join(' '),
  migrate: '',
}

export interface OpenOptions extends TransactionOptions {
  /** How many connections, at most. */
  readonly most?: number
}

export function openPostgres(
  { url, connections, writers = WRITERS, statementTimeoutMs }: PostgresOptions,
  purpose: Purpose,
  options: OpenOptions = {},
): Db {
  const timeouts = {
    statement_timeout: statementTimeoutMs,
    // For a server that does not answer any more.
    query_timeout: statementTimeoutMs + 1_000,
    lock_timeout: options.holding === undefined ? LOCK_TIMEOUT_MS : HOLDER_LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
  }
  const pool = new pg.Pool({
    ...connectionOf(url),
    application_name: 'latchkey',
    max: purpose === 'read' ? connections - writers - OTHER_CONNECTIONS : (options.most ?? writers),
    pipeline: true,
    // A start waits for its turn, and for a busy server.
    ...(purpose === 'migrate' ? STARTING : timeouts),
    options: `${KEEPALIVE} ${OPTIONS[purpose]}`,
    types: { getTypeParser: parserOf },
  })
  // A lost connection: its next user gets the error, or another connection.
  pool.on('error', () => {})
  pool.on('connect', (client) => void client.on('error', () => {}))
  return new Kysely<Database>({
    dialect: {
      createAdapter: () => new PostgresEngine(),
      createDriver: () => new PoolDriver(pool, purpose, options),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new Compiler(),
    },
  })
}

/** Counts, sums and instants stay far below the largest exact number. */
function parserOf(oid: number, format?: 'text' | 'binary') {
  const { INT8, NUMERIC } = pg.types.builtins
  return oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format as 'text')
}

class Compiler extends PostgresQueryCompiler {
  /** An empty list holds nothing; PostgreSQL refuses one, which SQLite takes. */
  override compileQuery(...args: Parameters<PostgresQueryCompiler['compileQuery']>): CompiledQuery {
    const query = super.compileQuery(...args)
    return { ...query, sql: query.sql.replaceAll(' in ()', ' in (null)') }
  }
}
