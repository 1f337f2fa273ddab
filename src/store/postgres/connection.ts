import type { DatabaseConnection, QueryResult } from 'kysely'
import pg from 'pg'
import type { NamedQuery } from '../engine.js'
import type { Db } from '../schema.js'
import { withoutNul } from './arrays.js'

/** A sender waits 5 s for its answer: by then it should know that the store cannot be reached. */
const CONNECT_TIMEOUT_MS = 3_000

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

/** Sends what has no answer that somebody needs. */
export function sendAhead(db: Db, query: NamedQuery): Promise<void> {
  return db.getExecutor().provideConnection((connection) => (connection as PooledConnection).sendAhead(query))
}

const IN_FAILED_TRANSACTION = '25P02'

/** Bounds the memory: a copy of a whole store is one transaction. */
const SENT_AHEAD_AT_MOST = 16 * 1024 * 1024

export class PooledConnection implements DatabaseConnection {
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
