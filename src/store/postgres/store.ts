import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Policy } from '../../entitlements/policy.js'
import { LatchkeyError } from '../../errors.js'
import { ensureChangeLogEpoch } from '../changes.js'
import { guardedWriter, hasCode, isStoreBroken, placeIn, unavailable } from '../engine.js'
import { migrate } from '../migrate.js'
import type { Db } from '../schema.js'
import { ensureConsoleSecret, ensurePolicy } from '../settings.js'
import { openPostgres, type PostgresOptions } from './dialect.js'
import { type CommitListener, createLease, hear } from './instances.js'
import { settleNumbers } from './numbers.js'

const OLDEST_VERSION = 14

/** A lease outlasts a connection that is lost unnoticed: its holder tries again by another. */
const LEASE_STATEMENT_MS = 4_000

/**
 * Opens the database for one of the processes that serve it: brings its schema up to date, settles the policy, and
 * opens the writer.
 * @param onBroken called when any part finds the database damaged
 * @throws {LatchkeyError} `schema_too_new`, `store_unavailable`
 */
export async function openPostgresStore<Writer extends { close(): Promise<void> }>(
  options: PostgresOptions,
  configured: Policy,
  openWriter: (db: Db) => Writer,
  onBroken: (error: unknown) => void = () => {},
) {
  await withCurrentSchema(options, async (db) => {
    await ensurePolicy(db, configured)
    await ensureChangeLogEpoch(db)
    await ensureConsoleSecret(db)
    await settleNumbers(db)
  })
  const own = randomUUID()
  const writer = openWriter(openPostgres(options, 'write', { announcing: own }))
  const reader = openReader(options, onBroken)
  const quiet = openPostgres({ ...options, statementTimeoutMs: LEASE_STATEMENT_MS }, 'write', {
    most: 1,
    // Requests ask whether a lease is taken, too.
    errorFor: (cause) => unavailable('read', cause),
  })
  return {
    file: placeIn(options.url),
    bytes: async () => {
      const { rows } = await sql<{ bytes: number }>`
        select pg_database_size(current_database()) as bytes`.execute(reader)
      return rows[0]?.bytes ?? 0
    },
    /** An empty database may be as intended: nothing beside it tells. */
    isNew: false,
    writer: guardedWriter(writer, onBroken),
    reader,
    /** As in SQLite, where a connection has a memory. */
    readApart: <T>(work: (db: Db) => Promise<T>): Promise<T> => work(reader),
    /** What its commits announce. */
    own,
    hear: (listener: CommitListener) => hear(options, own, listener),
    lease: (name: string) => createLease(quiet, options, name),
    async close() {
      await reader.destroy()
      await writer.close()
      await quiet.destroy()
    },
  }
}

/** Sees every commit of every process. Where it can't read, it throws `store_unavailable`. */
export function openReader(options: PostgresOptions, onBroken: (error: unknown) => void = () => {}): Db {
  return openPostgres(options, 'read', {
    errorFor(cause) {
      if (isStoreBroken(cause)) onBroken(cause)
      // A store that can't be read must never look like a customer without access.
      return unavailable('read', cause)
    },
  })
}

/**
 * Brings the schema up to date, in turn with other processes that do so; then works with it, without limits of time.
 * @param work is given the steps that ran, oldest first
 * @throws {LatchkeyError} `schema_too_new`, `store_unavailable`
 */
export async function withCurrentSchema<T>(
  options: PostgresOptions,
  work: (db: Db, steps: readonly string[]) => Promise<T> | T,
): Promise<T> {
  const db = openPostgres(options, 'migrate')
  try {
    await assertUsable(db)
    return await work(db, await migrate(db))
  } catch (error) {
    throw cannotUse(options, error)
  } finally {
    await db.destroy()
  }
}

async function assertUsable(db: Db): Promise<void> {
  const { rows } = await sql<{ version: number; encoding: string }>`
    select current_setting('server_version_num')::integer / 10000 as version,
      current_setting('server_encoding') as encoding`.execute(db)
  const { version = 0, encoding = '' } = rows[0] ?? {}
  if (version < OLDEST_VERSION) {
    throw new LatchkeyError(
      'store_unavailable',
      `The database is PostgreSQL ${version}: Latchkey needs ${OLDEST_VERSION} or newer.`,
    )
  }
  if (encoding !== 'UTF8') {
    throw new LatchkeyError(
      'store_unavailable',
      `The database has the encoding ${encoding}: create one with the encoding UTF8.`,
    )
  }
}

/** Settings of the server under which an acknowledged event may be lost, or a later start fail; one line each. */
export async function findWeaknesses(db: Db): Promise<readonly string[]> {
  // Each transaction sees to `synchronous_commit` itself.
  const { rows } = await sql<{ off: readonly string[]; mayCreate: boolean }>`
    select array(select name from pg_settings
        where name in ('fsync', 'full_page_writes') and setting = 'off' order by name) as off,
      has_schema_privilege(current_schema(), 'create') as "mayCreate"`.execute(db)
  const { off = [], mayCreate = true } = rows[0] ?? {}
  return [
    ...off.map((name) => `${name} is off: acknowledged events may be lost when the server ends`),
    ...(mayCreate
      ? []
      : ['its user may not create tables: an upgrade of Latchkey could not change the schema']),
  ]
}

const LOCKED = /^55P03$/

function cannotUse({ url }: PostgresOptions, cause: unknown): unknown {
  if (cause instanceof LatchkeyError || !(cause instanceof Error)) return cause
  const message = hasCode(cause, LOCKED)
    ? `The schema of ${placeIn(url)} can't be changed while another program reads its tables. End it, or wait for it to end (it may be a dump), and start again.`
    : `${placeIn(url)} can't be used: ${cause.message}. Check database.url, and the server.`
  return new LatchkeyError('store_unavailable', message, { cause })
}
