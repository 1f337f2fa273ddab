import Sqlite from 'better-sqlite3'
import { type Kysely, sql } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import type { Database } from '../../../src/store/schema.js'
import { startCheckpoints } from '../../../src/store/sqlite/checkpoint.js'
import { open, temporaryFile } from '../temporary-store.js'

interface Frames {
  readonly log: number
  readonly checkpointed: number
}

const WAIT_MS = 2
const LONGEST_WAITS = 5_000
const nobodyWakes = new Int32Array(new SharedArrayBuffer(4))

/** One transaction, of so many pages and a few. */
async function writePages(db: Kysely<Database>, count: number): Promise<void> {
  await sql`insert into filling select zeroblob(4000) from (
    with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count}) select i from n)`.execute(
    db,
  )
}

async function framesIn(db: Kysely<Database>): Promise<Frames> {
  const { rows } = await sql<Frames>`pragma wal_checkpoint(NOOP)`.execute(db)
  return rows[0] ?? { log: 0, checkpointed: 0 }
}

/** Holds up the whole thread meanwhile, as a writer under full load is: no message reaches it. */
async function untilMoved(db: Kysely<Database>, atLeast: number): Promise<void> {
  for (let waits = 0; (await framesIn(db)).checkpointed < atLeast; waits += 1) {
    if (waits === LONGEST_WAITS) throw new Error('The thread has moved nothing.')
    Atomics.wait(nobodyWakes, 0, 0, WAIT_MS)
  }
}

it('lets the log begin anew, though the writer never has a pause to hear from the thread', async () => {
  const file = temporaryFile()
  const db = open(file)
  const checkpoints = await startCheckpoints(db, file)
  await sql`create table filling (content blob)`.execute(db)
  await writePages(db, 4_200)
  // A log that is read, and of which more was written than is moved, does not begin anew by itself.
  const reader = new Sqlite(file, { readonly: true })
  onTestFinished(() => void reader.close())
  reader.exec('begin')
  reader.prepare('select count(*) from filling').get()
  await checkpoints.look()
  await untilMoved(db, 4_200)
  await writePages(db, 6_500)
  reader.exec('commit')
  const { log } = await framesIn(db)
  expect(log).toBeGreaterThan(10_000)
  await checkpoints.look()
  await untilMoved(db, log)
  await writePages(db, 200)
  expect((await framesIn(db)).log).toBeLessThan(1_000)
  const { rows } = await sql<{ rows: number }>`select count(*) as rows from filling`.execute(db)
  expect(rows).toEqual([{ rows: 10_900 }])
  await checkpoints.close()
})
