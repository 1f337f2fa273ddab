import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { sql } from 'kysely'
import type { Db } from '../store/schema.js'
import { KEEP_UPPER_PAGES } from '../store/sqlite/connection.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import type { ComparedDatabase, Comparison, ComparisonMessage, ComparisonTurn } from './compare.js'
import { compareStored } from './compare.js'

/*
 * Compares in a thread beside a running daemon, on a reading connection of its own: neither requests nor deliveries wait
 * for it.
 */

const port = parentPort as MessagePort
const { database, plan } = workerData as Comparison
const stopping = new AbortController()
let progress = { reached: 0, total: 0 }
let told = { now: 0, at: 0 }
const say = (message: ComparisonMessage) => port.postMessage(message)

/** Waits for the other thread: where that is busy with deliveries, the comparison waits its turn. */
async function pause(arrived: number): Promise<void> {
  const answered = once(port, 'message')
  say({ kind: 'paused', arrived, ...progress })
  const [{ now, isStopping }] = (await answered) as [ComparisonTurn]
  told = { now, at: performance.now() }
  if (isStopping) stopping.abort()
}

async function open({ file, postgres }: ComparedDatabase): Promise<Db> {
  if (postgres === undefined) {
    const db = openDatabase(file, { readOnly: true })
    await sql`pragma ${sql.raw(KEEP_UPPER_PAGES)}`.execute(db)
    return db
  }
  return (await import('../store/postgres/store.js')).openReader(postgres)
}

// Deliveries and questions go first where the processors are busy. Elsewhere, this would be of the whole process.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
const db = await open(database)
try {
  await pause(0)
  const report = await compareStored(db, plan, {
    pause,
    // The time of that thread, whose clock may be set.
    clock: () => told.now + Math.trunc(performance.now() - told.at),
    signal: stopping.signal,
    onProgress: (reached, total) => {
      progress = { reached, total }
    },
  })
  say({ kind: 'done', report })
} finally {
  await db.destroy()
  port.close()
}
