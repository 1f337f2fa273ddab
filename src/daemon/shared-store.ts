import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { Apply } from '../recompute/jobs.js'
import { guardedWriter } from '../store/engine.js'
import { type PostgresOptions, WRITERS } from '../store/postgres/dialect.js'
import { FOLLOWING } from '../store/postgres/instances.js'
import { findWeaknesses, openPostgresStore } from '../store/postgres/store.js'
import type { Db } from '../store/schema.js'
import type { MembershipEvent } from '../sync/membership.js'
import type { SyncChange, SyncWriteName, WriteSync } from '../sync/writes.js'
import { createWriter, type OpenWriter, type Writer } from './writer.js'

/**
 * Opens a store that several daemons share, and writes in this thread: the database does most of the work. One of them
 * at a time follows access, and one recomputes.
 */
export async function openSharedStore(
  postgres: PostgresOptions,
  { database, policy }: Config,
  {
    clock,
    log,
    fail,
  }: { readonly clock: () => number; readonly log: Logger; readonly fail: (error: unknown) => void },
) {
  // For the local socket.
  mkdirSync(dirname(database.file), { recursive: true, mode: 0o700 })
  const writerOn = (db: Db): Writer => createWriter({ db, clock, erasureList: null })
  const openOn = (db: Db): OpenWriter => ({ ...writerOn(db), close: () => db.destroy() })
  const store = await openPostgresStore(postgres, policy, openOn, fail)
  const weaknesses = await findWeaknesses(store.reader).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  for (const weakness of weaknesses) log.warn(`the PostgreSQL server: ${weakness}`)

  const lease = store.lease(FOLLOWING)
  const leading = lease.openFenced(store.own)
  const leadingWriter = guardedWriter(openOn(leading), fail)
  const { alone } = guardedWriter(
    {
      async alone<T>(work: (apply: Apply) => Promise<T>): Promise<T> {
        const lease = store.lease('recompute')
        const done = await lease.during(store.own, async (fenced) => ({
          answer: await work(guardedWriter(openOn(fenced), fail).recompute),
        }))
        if (done !== null) return done.answer
        const message = 'Another instance is running a rebuild, replay or comparison: wait for it to end.'
        throw new LatchkeyError('rebuild_running', message)
      },
      close: store.close,
    },
    fail,
  )
  const backfillLease = (environment: Environment) => store.lease(`backfill.${environment}`)
  return {
    ...store,
    /** How many transactions with deliveries this instance may have under way. */
    writers: postgres.writers ?? WRITERS,
    /** Runs a backfill while no other instance runs one of this environment; null: one does. */
    async backfillAlone<T>(environment: Environment, work: (writeSync: WriteSync) => Promise<T>) {
      const done = await backfillLease(environment).during(store.own, async (fenced) => ({
        answer: await work(guardedWriter(openOn(fenced), fail).writeSync),
      }))
      return done === null ? null : done.answer
    },
    isBackfilling: (environment: Environment) => backfillLease(environment).isTaken(),
    /** Runs a job while no other instance runs one. What it writes fails once another has taken over. */
    alone,
    /** Whether this instance follows access. */
    isLeader: lease.isHeld,
    /** Whether any instance rebuilds, replays or compares. */
    isRecomputing: () => store.lease('recompute').isTaken(),
    /** What calls to platforms begin and end with fails once another instance makes them. */
    writeSync: ((name, change) =>
      (isOfCall(name, change) ? leadingWriter : store.writer).writeSync(
        name,
        change,
      )) satisfies WriteSync as WriteSync,
    /** Takes turns with other instances to follow access, and hears what they write; returns what ends it. */
    takeTurns(following: { onLeaderChange(): Promise<void>; wake(): void }): () => Promise<void> {
      lease.keep(() => {
        log.info({ leads: lease.isHeld() }, 'which instance follows access has changed')
        following
          .onLeaderChange()
          .catch((error: unknown) => log.error({ err: error }, 'could not take over sync'))
      })
      const end = store.hear({
        onCommit: following.wake,
        lost: (err) => log.warn({ err }, 'PostgreSQL is unreachable: deliveries and questions get 503'),
        found: (ms) => log.info({ outForSeconds: Math.round(ms / 1_000) }, 'PostgreSQL is reachable again'),
      })
      return async () => {
        await end()
        await lease.release()
      }
    },
    async close() {
      await leading.destroy()
      await store.close()
    },
  }
}

/** Whether a write records a call to a platform, before it is made or after. */
function isOfCall<Name extends SyncWriteName>(name: Name, change: SyncChange<Name>): boolean {
  if (name !== 'stepMemberships') return false
  return (change as SyncChange<'stepMemberships'>).some(({ event: { kind } }) => OF_CALLS.includes(kind))
}

const OF_CALLS: readonly MembershipEvent['kind'][] = ['begin', 'found', 'gave', 'took', 'gone', 'failed']
