import { hash } from 'node:crypto'
import {
  AbortedTransactionError,
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type RawBuilder,
  sql,
  type TransactionSettings,
} from 'kysely'
import pg from 'pg'
import { LatchkeyError } from '../../errors.js'
import { ask, type EachRow, type Engine, type Row, type RowStatement } from '../engine.js'
import type { Database, Db, Tx } from '../schema.js'
import { columnsOf, withoutNul } from './arrays.js'

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

/** `write`: the transactions of a writer; `migrate`: the same, however long they take. */
export type Purpose = 'read' | 'write' | 'migrate'

/**
 * The key of the advisory lock that every writing transaction holds, alone or shared with others beside it: any number
 * that others do not use. Version 1.0.0 always holds it alone.
 */
const WRITER_LOCK = 4_680_468_046

/** A sender waits 5 s for its answer: by then it should know that the store cannot be reached. */
const CONNECT_TIMEOUT_MS = 3_000

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

/** What finds rows otherwise than by their keys. */
const BY_KEY = ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin']

const OPTIONS: Readonly<Record<Purpose, string>> = {
  read: '-c default_transaction_read_only=on',
  // Batches find rows by their keys. A plan made while the tables were small would go on reading them whole.
  write: BY_KEY.map((name) => `-c ${name}=off`).join(' '),
  migrate: '',
}

/** A server may have switched it off for speed; its other values wait for replicas, and stay. */
const COMMIT_DURABLY = `select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'`

export interface OpenOptions {
  /** Makes the error for a failed statement; if omitted, PostgreSQL's own error is thrown. */
  readonly errorFor?: (error: unknown) => unknown
  /** How many connections, at most. */
  readonly most?: number
  /** What every commit of a writer announces to all that listen: that this process has written. */
  readonly announcing?: string
  /** The setting, and the beginning of its value, without which nothing is committed: a lease, and its holder. */
  readonly holding?: { readonly lease: string; readonly holder: string }
}

/** What commits announce, by the process that made them. */
export const CHANNEL = 'latchkey'

const announce = (own: string | undefined) => `notify ${CHANNEL}, '${own}'`

/** Commits of this time share one announcement. */
const ANNOUNCE_AFTER_MS = 10

/** What every connection has in common. */
export function connectionOf(url: string): pg.ClientConfig {
  return {
    // The library reads them so, but warns that a later version of it will trust any server.
    connectionString: url.replace(/([?&]sslmode=)(prefer|require|verify-ca)(?=&|$)/, '$1verify-full'),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  }
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

class PostgresEngine extends PostgresAdapter implements Engine {
  readonly isRemote = true
  readonly changeLog = 'change_log'

  /** The order of texts is that of their bytes, as everywhere in the program. */
  readonly columnTypes = {
    isShared: true,
    text: sql`text collate "C"`,
    integer: sql`bigint`,
    bytes: sql`bytea`,
    sequence: sql`bigint generated by default as identity primary key`,
    rowNumber: sql`bigint generated by default as identity primary key`,
    // An event is stored as it comes: the server would spend as long on compressing one as on inserting it.
    tableOptions: sql`with (toast_tuple_target = 8160)`,
    keyedTableOptions: sql``,
  }

  /** By the types of their columns. */
  readonly #statements = new WeakMap<RowStatement, Map<string, PreparedStatement>>()
  #named = 0

  /** One statement, so that a batch takes as many round trips as a single event; the server keeps it prepared. */
  async forEach(db: Db, statement: RowStatement, rows: readonly Row[]): Promise<unknown[]> {
    const columns = columnsOf(rows)
    const types = columns.map((column) => column?.type ?? null)
    const known = this.#statements.get(statement) ?? new Map<string, PreparedStatement>()
    this.#statements.set(statement, known)
    const prepared = known.get(types.join()) ?? this.#prepare(statement(eachOf(types)).compile(db).sql)
    known.set(types.join(), prepared)
    const { sql, name, isSilent } = prepared
    const parameters = columns.flatMap((column) => column?.array ?? [])
    const query = { ...CompiledQuery.raw(sql, parameters), name }
    if (!isSilent || !db.isTransaction) return ask<unknown>(db, query)
    await sendAhead(db, query)
    return []
  }

  #prepare(sql: string): PreparedStatement {
    this.#named += 1
    return {
      sql,
      name: `each${this.#named}`,
      isSilent: /^\s*(insert|update|delete)\b/.test(sql) && !/\breturning\b/.test(sql),
    }
  }

  /** In one order, so that no two transactions wait for each other: none locks anything later. */
  async lock(trx: Tx, names: readonly string[]): Promise<void> {
    const keys = [...new Set(names.map(lockKey))].sort((a, b) => (a < b ? -1 : 1))
    if (keys.length > 0)
      await sendAhead(trx, { ...CompiledQuery.raw(LOCK_ALL, [`{${keys.join()}}`]), name: 'lock' })
  }

  async drawSeqs(trx: Tx, count: number): Promise<readonly number[]> {
    const rows = await ask<{ seq: number }>(trx, {
      ...CompiledQuery.raw(DRAW_SEQS, [count]),
      name: 'seqs',
    } as NamedQuery)
    return rows.map(({ seq }) => seq)
  }

  isOneOf(column: string, texts: readonly string[]): RawBuilder<boolean> {
    return sql`${sql.ref(column)} = any(${texts})`
  }

  contains(column: string, part: string | Buffer): RawBuilder<boolean> {
    return sql`position(${part} in ${sql.ref(column)}) > 0`
  }

  fieldIn(column: string, field: string): RawBuilder<string> {
    return sql`(${sql.ref(column)}::json -> ${sql.lit(field)})::text`
  }

  async emptyLog() {}
}

interface PreparedStatement {
  readonly sql: string
  /** Under which every connection prepares it once. */
  readonly name: string
  /** Whether it only writes: nobody waits for its answer, which holds nothing. */
  readonly isSilent: boolean
}

interface NamedQuery extends CompiledQuery {
  readonly name?: string
}

/** Sends what has no answer that somebody needs. */
function sendAhead(db: Db, query: NamedQuery): Promise<void> {
  return db.getExecutor().provideConnection((connection) => (connection as PooledConnection).sendAhead(query))
}

/** Evaluated in the order of the array. */
const LOCK_ALL = 'select count(pg_advisory_xact_lock(key)) from unnest($1::bigint[]) as key'

/** A name as one of the numbers that locks have: two names with the same one only wait for each other. */
function lockKey(name: string): bigint {
  return hash('sha1', name, 'buffer').readBigInt64BE()
}

const DRAW_SEQS = `select nextval('event_seqs') as seq from generate_series(1, $1::integer)`

/** The rows as arrays, one for each column. A column of nulls has no type, and needs none as a literal. */
function eachOf(types: readonly (string | null)[]): EachRow {
  const values = types.map((type, i) => (type === null ? sql`null` : sql.ref(`each.c${i}`)))
  const names = types.flatMap((type, i) => (type === null ? [] : sql.ref(`c${i}`)))
  const arrays = types.filter((type) => type !== null).map((type, i) => sql.raw(`$${i + 1}::${type}`))
  const each = sql`unnest(${sql.join(arrays)}) as each (${sql.join(names)})`
  const list = sql`select ${sql.join(values)} from ${each}`
  return {
    values,
    list,
    from: sql`from ${each}`,
    has: (names) => sql`(${sql.join(names.map((name) => sql.ref(name)))}) in (${list})`,
  }
}

class Compiler extends PostgresQueryCompiler {
  /** An empty list holds nothing; PostgreSQL refuses one, which SQLite takes. */
  override compileQuery(...args: Parameters<PostgresQueryCompiler['compileQuery']>): CompiledQuery {
    const query = super.compileQuery(...args)
    return { ...query, sql: query.sql.replaceAll(' in ()', ' in (null)') }
  }
}

class PoolDriver implements Driver {
  readonly #pool: pg.Pool
  readonly #purpose: Purpose
  readonly #holding: OpenOptions['holding']
  readonly #announcing: string | undefined
  /** Until then, further commits are announced with the last one. */
  #announceSoon: NodeJS.Timeout | undefined
  readonly #errorFor: (error: unknown) => unknown

  constructor(
    pool: pg.Pool,
    purpose: Purpose,
    { errorFor = (error) => error, announcing, holding }: OpenOptions,
  ) {
    this.#pool = pool
    this.#purpose = purpose
    this.#holding = holding
    this.#announcing = announcing
    this.#errorFor = (error) => errorFor(withCode(error))
  }

  async init() {}

  async acquireConnection(): Promise<PooledConnection> {
    try {
      return new PooledConnection(await this.#pool.connect(), this.#errorFor)
    } catch (error) {
      throw this.#errorFor(error)
    }
  }

  async beginTransaction(
    connection: PooledConnection,
    { accessMode, isolationLevel }: TransactionSettings,
  ): Promise<void> {
    connection.onlyReads = accessMode === 'read only'
    const isBeside = isolationLevel === 'read committed'
    connection.isBeside = isBeside
    const begin = connection.onlyReads ? BEGIN_READ_ONLY : isBeside ? BEGIN_BESIDE : BEGIN[this.#purpose]
    const holding = connection.onlyReads ? undefined : this.#holding
    // What follows is executed after it, and fails if it does.
    if (isBeside && holding === undefined) return connection.runAhead(begin)
    try {
      const last = await connection.run(`${begin}${holding === undefined ? '' : `; ${isHeld(holding)}`}`)
      if (holding !== undefined && last?.rows.length === 0) throw lost()
    } catch (error) {
      // It has begun, and did not get the lock, or may not have it any more.
      await this.rollbackTransaction(connection).catch(() => {})
      throw error
    }
  }

  async commitTransaction(connection: PooledConnection): Promise<void> {
    const isAnnounced = this.#announcing !== undefined && !connection.onlyReads
    const isAlone = isAnnounced && !connection.isBeside
    if (this.#holding !== undefined && !connection.onlyReads) await this.#keepHeld(connection, this.#holding)
    // It ends so after a failed statement, whose error somebody has caught.
    const last = await connection.run(isAlone ? `${announce(this.#announcing)}; commit` : 'commit')
    if (last?.command === 'ROLLBACK') throw connection.failure ?? new AbortedTransactionError()
    if (!isAnnounced || isAlone) return
    // In the transaction, it would have all commits of the server wait for each other.
    this.#announceSoon ??= setTimeout(() => void this.#announce(), ANNOUNCE_AFTER_MS)
  }

  /**
   * At the end, so that a holder who was stopped for a while commits nothing once another has taken over: nobody takes
   * over from here to the commit. Not at the beginning: locking the row gives the transaction its number, which must be
   * later than those of the transactions that it waits for.
   */
  async #keepHeld(connection: PooledConnection, holding: Holding): Promise<void> {
    const kept = await connection.run(`${isHeld(holding)} for key share`)
    if (kept?.rows.length === 0) throw lost()
  }

  /** If it fails, others look by themselves. */
  async #announce(): Promise<void> {
    this.#announceSoon = undefined
    await this.#pool.query(announce(this.#announcing)).catch(() => {})
  }

  async rollbackTransaction(connection: PooledConnection): Promise<void> {
    await connection.run('rollback').catch((error: unknown) => {
      connection.isBroken = true
      throw error
    })
  }

  async releaseConnection(connection: PooledConnection): Promise<void> {
    connection.release()
  }

  async destroy(): Promise<void> {
    const isOwed = this.#announceSoon !== undefined
    clearTimeout(this.#announceSoon)
    if (isOwed) await this.#announce()
    await this.#pool.end()
  }
}

const BEGIN_ALONE = `begin; ${COMMIT_DURABLY}; select pg_advisory_xact_lock(${WRITER_LOCK})`

const BEGIN: Readonly<Record<Purpose, string>> = {
  // One snapshot, so that what belongs together matches.
  read: 'begin isolation level repeatable read',
  write: BEGIN_ALONE,
  migrate: BEGIN_ALONE,
}

/** Beside those that do the same, and never beside one that writes alone. */
const BEGIN_BESIDE = `begin; ${COMMIT_DURABLY}; select pg_advisory_xact_lock_shared(${WRITER_LOCK})`

/** Whatever the connection is for. Like batches, it finds rows by their keys. */
const BEGIN_READ_ONLY = [
  'begin isolation level repeatable read read only',
  ...BY_KEY.map((name) => `set local ${name} = off`),
].join('; ')

const lost = () => new LatchkeyError('store_unavailable', 'Another instance has taken this over.')

type Holding = NonNullable<OpenOptions['holding']>

/** A row, if the lease is still its holder's. Renewing it changes no key, and waits for nobody who shares that. */
function isHeld({ lease, holder }: Holding): string {
  return `select key from settings where key = '${lease}' and value like '${holder} %'`
}

const IN_FAILED_TRANSACTION = '25P02'

/** Bounds the memory: a copy of a whole store is one transaction. */
const SENT_AHEAD_AT_MOST = 16 * 1024 * 1024

class PooledConnection implements DatabaseConnection {
  readonly #client: pg.PoolClient
  readonly #errorFor: (error: unknown) => unknown
  isBroken = false
  /** Whether its transaction does. */
  onlyReads = false
  /** Whether others write beside its transaction. */
  isBeside = false
  /** The first error: what was sent after it is only told that the transaction has failed. */
  #failure: unknown
  /** Bytes of the writes that have no answer yet. */
  #sentAhead = 0

  constructor(client: pg.PoolClient, errorFor: (error: unknown) => unknown) {
    this.#client = client
    this.#errorFor = errorFor
  }

  /** Why the transaction has failed; undefined: it has not. */
  get failure(): unknown {
    return this.#failure === undefined ? undefined : this.#errorFor(this.#failure)
  }

  /**
   * Sends a write whose answer nobody needs. What follows is executed after it; if it fails, so do all later statements,
   * and the commit.
   */
  async sendAhead(query: NamedQuery): Promise<void> {
    let bytes = 0
    for (const value of query.parameters)
      if (typeof value === 'string' || Buffer.isBuffer(value)) bytes += value.length
    this.#sentAhead += bytes
    const answer = this.executeQuery(query)
      .catch(() => {})
      .finally(() => {
        this.#sentAhead -= bytes
      })
    if (this.#sentAhead > SENT_AHEAD_AT_MOST) await answer
  }

  async executeQuery<Answer>(query: NamedQuery): Promise<QueryResult<Answer>> {
    const { sql: text, parameters, name } = query
    const values = parameters.map(withoutNul)
    const { command, rowCount, rows } = await this.#orError(
      this.#client.query({ text, values, ...(name !== undefined && { name }) }),
    )
    const changes = command !== 'SELECT' && rowCount !== null
    return { rows: rows as Answer[], ...(changes && { numAffectedRows: BigInt(rowCount) }) }
  }

  /** Whose answers nobody waits for. */
  runAhead(commands: string): void {
    this.run(commands).catch(() => {})
  }

  /** @returns the answer to the last of these commands */
  async run(commands: string): Promise<pg.QueryResult | undefined> {
    return [await this.#orError(this.#client.query(commands))].flat().at(-1)
  }

  async #orError<Answer>(answer: Promise<Answer>): Promise<Answer> {
    try {
      return await answer
    } catch (error) {
      // Lost, or without an answer for too long.
      this.isBroken ||= !(error instanceof pg.DatabaseError)
      const isConsequence = error instanceof pg.DatabaseError && error.code === IN_FAILED_TRANSACTION
      if (!isConsequence) this.#failure ??= error
      throw this.#errorFor(this.#failure ?? error)
    }
  }

  // biome-ignore lint/correctness/useYield: nothing streams
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('nothing streams')
  }

  release(): void {
    this.#client.release(this.isBroken)
  }
}

const TLS_ADVICE: readonly (readonly [code: RegExp, advice: string])[] = [
  [
    /^(SELF_SIGNED|DEPTH_ZERO_SELF_SIGNED|UNABLE_TO_)/,
    '. Name the authority of its certificate in database.url: sslrootcert=/path/of/ca.pem',
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, '. Name the server in database.url as its certificate does'],
]

/** Errors of the connection have no code of PostgreSQL, and some have none at all. */
export function withCode(error: unknown): unknown {
  if (error instanceof pg.DatabaseError || !(error instanceof Error)) return error
  const [, advice = ''] = TLS_ADVICE.find(([code]) => 'code' in error && code.test(String(error.code))) ?? []
  return Object.assign(error, {
    message: `PostgreSQL cannot be reached: ${error.message}${advice}`,
    code: 'POSTGRES_UNREACHABLE',
  })
}
