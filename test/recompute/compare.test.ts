import { chmodSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { type Kysely, sql } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { refreshDue } from '../../src/ingest/settle.js'
import { applyPlan } from '../../src/recompute/apply.js'
import { type ComparedDatabase, compareStored, startComparison } from '../../src/recompute/compare.js'
import { inSnapshot } from '../../src/store/engine.js'
import { migrate } from '../../src/store/migrate.js'
import type { Database } from '../../src/store/schema.js'
import { ensurePolicy, policyInForce, savePolicy, setSetting } from '../../src/store/settings.js'
import { minute, sub } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { bodyOf, deliveryOf, grantOf } from '../ingest/wire.js'
import { emptyStores, temporaryFile } from '../store/temporary-store.js'
import { ENGINE, openStoreAt, postgresAt } from '../world.js'
import {
  deliveries,
  everything,
  NOW,
  PACE,
  REBUILD,
  replayOf,
  storeUnder,
  VERIFY,
} from './recompute-store.js'

const ALL = { ...VERIFY, sampleSize: Number.POSITIVE_INFINITY }
const NOTHING = { count: 0, named: [] }
const RUNS = ENGINE === 'sqlite' ? 30 : 10
const DAY = 86_400_000

/** A store with these grants, the connection of a writer to it, and where it is. */
async function storeWith(grants: number, policy: Policy = DOCUMENTED_POLICY) {
  const file = temporaryFile()
  const db = await openStoreAt(file, { readOnly: false })
  onTestFinished(() => db.destroy())
  await migrate(db)
  await ensurePolicy(db, policy)
  const writeBatch = createBatchWriter({ db, policy: policyInForce, clock: () => NOW })
  for (let n = 1; n <= grants; n += 1) await writeBatch([grantOf(n)])
  const postgres = ENGINE === 'postgres' ? await postgresAt(file) : undefined
  const database: ComparedDatabase = { file, postgres }
  return { file, db, writeBatch, database }
}

/** A store as of minute 5, with access that ends at a later one. */
async function withEndAt(end: number) {
  const store = await storeWith(0, { ...DOCUMENTED_POLICY, canceled: 'period_end' })
  const writeBatch = createBatchWriter({ db: store.db, policy: policyInForce, clock: () => minute(5) })
  const cycle = { expiresAt: minute(end) }
  for (const event of [
    sub('evt_1', 'subscription.created', 1, cycle),
    sub('evt_2', 'subscription.canceled', 2, cycle),
  ])
    await writeBatch([deliveryOf(bodyOf(event))])
  return store
}

/** Has something happen after each statement, in the same snapshot. */
function meanwhile(reader: Kysely<Database>, happen: () => Promise<unknown>): Kysely<Database> {
  return reader.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      await happen()
      return result
    },
  })
}

async function readerOf(file: string): Promise<Kysely<Database>> {
  const reader = await openStoreAt(file, { readOnly: true })
  onTestFinished(() => reader.destroy())
  return reader
}

const damage = (db: Kysely<Database>) => db.updateTable('entitlements').set({ active: 0 }).execute()
const WRONG = { environment: 'live', kind: 'entitlement', id: 'cus_1 pro_1' }

describe('a verification', () => {
  it('finds nothing on an undamaged store, whatever is taken in and ends by the clock meanwhile', async () => {
    const steps = fc.infiniteStream(fc.constantFrom('deliver', 'deliver', 'wait', 'refresh'))
    await fc.assert(
      fc.asyncProperty(deliveries, policies, fc.nat(), steps, async (told, policy, cut, step) => {
        const [reader, db] = (await emptyStores(2)) as [Kysely<Database>, Kysely<Database>]
        let now = minute(0)
        const clock = () => now
        await ensurePolicy(db, policy)
        const writeBatch = createBatchWriter({ db, policy: policyInForce, clock })
        const late = [...told]
        for (const early of late.splice(0, cut % (told.length + 1))) await writeBatch([early])
        const goOn = async (): Promise<void> => {
          const next = step.next().value
          if (next === 'wait') now += DAY
          if (next === 'refresh') await refreshDue(db, clock)
          const delivery = next === 'deliver' ? late.shift() : undefined
          if (delivery) await writeBatch([delivery])
        }
        const between: Promise<void>[] = []
        const { differences } = await compareStored(reader, ALL, {
          pace: PACE,
          // While a group is read, and between two.
          clock: () => {
            between.push(goOn())
            return clock()
          },
          onProgress: () => void between.push(goOn()),
        })
        expect(differences).toEqual(NOTHING)
        await Promise.all(between)
        await Promise.all([reader.destroy(), db.destroy()])
      }),
      { numRuns: RUNS },
    )
  })

  it('finds no difference where access ends by the clock while its group is read', async () => {
    const { file, db } = await withEndAt(10)
    let now = minute(6)
    const reader = meanwhile(await readerOf(file), async () => {
      now = minute(30)
      await refreshDue(db, () => now)
    })
    const { differences } = await compareStored(reader, ALL, { clock: () => now })
    expect(differences).toEqual(NOTHING)
    expect(await db.selectFrom('entitlements').select('active').execute()).toEqual([{ active: 0 }])
  })

  it('finds no difference where another process, whose clock is ahead, has written that access ended', async () => {
    const { file, db } = await withEndAt(10)
    await refreshDue(db, () => minute(10))
    const clock = () => minute(10) - 1_000
    const { differences } = await compareStored(await readerOf(file), ALL, { clock })
    expect(differences).toEqual(NOTHING)
  })

  it('is refused once another policy is put in force meanwhile', async () => {
    const { file, db } = await storeWith(3)
    const policy = { ...DOCUMENTED_POLICY, canceled: 'period_end' } as const
    const pause = () => db.transaction().execute((trx) => savePolicy(trx, policy))
    const verified = compareStored(await readerOf(file), ALL, { clock: () => NOW, pause })
    await expect(verified).rejects.toMatchObject({
      code: 'rebuild_running',
      message: expect.stringMatching('run it again'),
    })
  })

  it('tells between two groups how many events were stored meanwhile, which others have to make room for', async () => {
    const { file, writeBatch } = await storeWith(3)
    const told: number[] = []
    const pause = async (arrived: number) => {
      told.push(arrived)
      if (told.length <= 2) await writeBatch([grantOf(4), grantOf(5)].slice(told.length - 1))
    }
    await compareStored(await readerOf(file), ALL, { clock: () => NOW, pause, pace: PACE })
    expect(told.slice(0, 4)).toEqual([0, 2, 0, 0])
  })

  it('holds no lock, writes nothing, and lets others write in the middle of a group', async () => {
    const { file, db } = await storeWith(3)
    await damage(db)
    const before = await everything(db)
    const seen: unknown[] = []
    // Even on a connection that may write.
    const own = await openStoreAt(file, { readOnly: false })
    onTestFinished(() => own.destroy())
    const reader = meanwhile(own, async () => {
      if (ENGINE === 'postgres') {
        const { rows } = await sql`
          select a.pid from pg_stat_activity a join pg_locks l on l.pid = a.pid
          where a.datname = current_database() and a.pid <> pg_backend_pid()
            and (l.locktype in ('advisory', 'transactionid', 'tuple') or a.backend_xid is not null
              or l.mode not in ('AccessShareLock', 'ExclusiveLock')
              or (l.mode = 'ExclusiveLock' and l.locktype <> 'virtualxid'))`.execute(db)
        seen.push(...rows)
      }
      await db.transaction().execute((trx) => setSetting(trx, 'written_meanwhile', 'x'))
    })
    const { differences } = await compareStored(reader, ALL, { clock: () => NOW, pace: PACE })
    expect(differences.count).toBe(3)
    expect(seen).toEqual([])
    await db.deleteFrom('settings').where('key', '=', 'written_meanwhile').execute()
    expect(await everything(db)).toEqual(before)
  })
})

it('no connection writes in the snapshot that a group is compared in, and a writer’s writes again after it', async () => {
  const { db, file } = await storeWith(1)
  const code = ENGINE === 'sqlite' ? 'SQLITE_READONLY' : '25006'
  for (const one of [db, await readerOf(file)]) {
    await expect(inSnapshot(one, damage)).rejects.toMatchObject(one === db ? { code } : {})
  }
  await damage(db)
  const rows = await inSnapshot(db, async (reader) => {
    const active = () => reader.selectFrom('entitlements').select('active').execute()
    const first = await active()
    const other = await openStoreAt(file, { readOnly: false })
    await other.updateTable('entitlements').set({ active: 1 }).execute()
    await other.destroy()
    return [...first, ...(await active())]
  })
  expect(rows).toEqual([{ active: 0 }, { active: 0 }])
})

describe('in a thread', () => {
  it('finds the same, at the time of the one who asks, and says how far it is', async () => {
    const { db, database } = await storeWith(2)
    await damage(db)
    const progress: number[] = []
    let asked = 0
    const clock = () => {
      asked += 1
      return NOW
    }
    const onProgress = (reached: number) => progress.push(reached)
    const report = await startComparison(database, { ...ALL, sampleSize: 1 }, { clock, onProgress })
    expect(report.differences).toEqual({ count: 2, named: [WRONG] })
    expect(report.access.all).toMatchObject({ gains: 2, losses: 0 })
    expect(asked).toBe(progress.length)
    expect(progress).toEqual([...progress].sort())
    expect(Math.max(...progress)).toBe(2)
  })

  it.each([
    [VERIFY, 'rebuild_interrupted'],
    [replayOf({}, { mode: 'compare' }), 'replay_interrupted'],
  ] as const)('is stopped between two groups', async (plan, code) => {
    const { database } = await storeWith(2)
    const stopping = new AbortController()
    let turns = 0
    const onProgress = () => {
      turns += 1
      if (turns === 2) stopping.abort()
    }
    const options = { clock: () => NOW, onProgress, signal: stopping.signal }
    await expect(startComparison(database, plan, options)).rejects.toMatchObject({ code })
    expect(turns).toBe(2)
  })

  it('says what it can’t read, and what must end first', async () => {
    const { db, database } = await storeWith(1)
    const start = () => startComparison(database, ALL, { clock: () => NOW })
    const isStopping = () => true
    const policy = { ...DOCUMENTED_POLICY, canceled: 'period_end' } as const
    const moved = applyPlan({ db, clock: () => NOW }, { ...REBUILD, policy }, { isStopping })
    await expect(moved).rejects.toMatchObject({ code: 'rebuild_interrupted' })
    await expect(start()).rejects.toMatchObject({ code: 'rebuild_running' })
    await applyPlan({ db, clock: () => NOW }, REBUILD)
    await db.updateTable('events').set({ normalized: 'not json' }).execute()
    await expect(start()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('evt_1'),
    })
    await sql`drop table entitlements`.execute(db)
    await db.updateTable('events').set({ normalized: null, source_kind: null }).execute()
    await expect(start()).rejects.toMatchObject({ code: 'store_unavailable' })
  })
})

describe.runIf(ENGINE === 'sqlite')('on a file', () => {
  it('lets the write-ahead log be emptied between two groups', async () => {
    const { file, db } = await storeWith(5)
    const emptied: Promise<unknown>[] = []
    const onProgress = () => {
      const added = db.insertInto('settings').values({ key: `written_${emptied.length}`, value: 'x' })
      const empty = sql`pragma wal_checkpoint(TRUNCATE)`
      emptied.push(added.execute().then(async () => (await empty.execute(db)).rows))
    }
    await compareStored(await readerOf(file), ALL, { clock: () => NOW, onProgress, pace: PACE })
    const done = await Promise.all(emptied)
    expect(done.length).toBeGreaterThan(3)
    expect(done.flat()).toEqual(done.map(() => ({ busy: 0, log: 0, checkpointed: 0 })))
  })

  it('reads one that nobody may write, and leaves its bytes alone', async () => {
    const { file, close, db } = await storeUnder(DOCUMENTED_POLICY, [grantOf(1)])
    await damage(db)
    await close()
    chmodSync(file, 0o444)
    const before = readFileSync(file)
    const { differences } = await startComparison({ file }, ALL, { clock: () => NOW })
    expect(differences).toEqual({ count: 1, named: [WRONG] })
    expect(readFileSync(file)).toEqual(before)
  })
})
