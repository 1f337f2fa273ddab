import { AbortedTransactionError, type Driver, type TransactionSettings } from 'kysely'
import type pg from 'pg'
import { LatchkeyError } from '../../errors.js'
import { PooledConnection, withCode } from './connection.js'

/** `write`: the transactions of a writer; `migrate`: the same, however long they take. */
export type Purpose = 'read' | 'write' | 'migrate'

export interface TransactionOptions {
  /** Makes the error for a failed statement; if omitted, PostgreSQL's own error is thrown. */
  readonly errorFor?: (error: unknown) => unknown
  /** What every commit of a writer announces to all that listen: that this process has written. */
  readonly announcing?: string
  /** The setting, and the beginning of its value, without which nothing is committed: a lease, and its holder. */
  readonly holding?: { readonly lease: string; readonly holder: string }
}

/**
 * The key of the advisory lock that every writing transaction holds, alone or shared with others beside it: any number
 * that others do not use. Version 1.0.0 always holds it alone.
 */
const WRITER_LOCK = 4_680_468_046

/** What finds rows otherwise than by their keys. */
export const BY_KEY = ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin']

/** A server may have switched it off for speed; its other values wait for replicas, and stay. */
const COMMIT_DURABLY = `select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'`

/** What commits announce, by the process that made them. */
export const CHANNEL = 'latchkey'

const announce = (own: string | undefined) => `notify ${CHANNEL}, '${own}'`

/** Commits of this time share one announcement. */
const ANNOUNCE_AFTER_MS = 10

export class PoolDriver implements Driver {
  readonly #pool: pg.Pool
  readonly #purpose: Purpose
  readonly #holding: TransactionOptions['holding']
  readonly #announcing: string | undefined
  /** Until then, further commits are announced with the last one. */
  #announceSoon: NodeJS.Timeout | undefined
  readonly #errorFor: (error: unknown) => unknown

  constructor(
    pool: pg.Pool,
    purpose: Purpose,
    { errorFor = (error) => error, announcing, holding }: TransactionOptions,
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

type Holding = NonNullable<TransactionOptions['holding']>

/** A row, if the lease is still its holder's. Renewing it changes no key, and waits for nobody who shares that. */
function isHeld({ lease, holder }: Holding): string {
  return `select key from settings where key = '${lease}' and value like '${holder} %'`
}
