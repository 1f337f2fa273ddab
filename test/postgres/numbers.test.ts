import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import { NEVER_GRANTED } from '../../src/entitlements/entitlement.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import {
  appendChanges,
  changeLogEpoch,
  ensureChangeLogEpoch,
  latestCursor,
  loadChanges,
  logEnd,
  type NewChange,
  untilReadable,
} from '../../src/store/changes.js'
import { beside, engineOf } from '../../src/store/engine.js'
import { migrate } from '../../src/store/migrate.js'
import { openPostgres } from '../../src/store/postgres/dialect.js'
import { settleNumbers } from '../../src/store/postgres/numbers.js'
import { openPostgresStore } from '../../src/store/postgres/store.js'
import type { Database } from '../../src/store/schema.js'
import { grantOf } from '../ingest/wire.js'
import { eventually } from '../setup/eventually.js'
import { postgresAt } from '../world.js'

const NOW = Date.UTC(2026, 5, 1)

let made = 0

async function newDatabase() {
  made += 1
  const options = await postgresAt(`numbers ${made}`)
  const db = openPostgres(options, 'write')
  onTestFinished(() => db.destroy())
  return { db, url: options.url }
}

function change(n: number): NewChange {
  const access = { ...NEVER_GRANTED, active: true }
  return {
    at: NOW,
    environment: 'live',
    customerId: `cus_${n}`,
    productId: 'pro_1',
    before: NEVER_GRANTED,
    after: access,
    cause: { kind: 'event', eventId: `evt_${n}` },
  }
}

const append = (db: Kysely<Database>, ...changes: readonly NewChange[]) =>
  beside(db, (trx) => appendChanges(trx, changes))

/** Appends, and commits once told to. */
async function beginAppend(db: Kysely<Database>, n: number) {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<'commit' | 'roll back'>()
  const ended = beside(db, async (trx) => {
    await appendChanges(trx, [change(n)])
    // Answered only after it.
    await sql`select 1`.execute(trx)
    begun.resolve()
    if ((await end.promise) === 'roll back') throw new Error('rolled back')
  }).catch(({ message }: Error) => message)
  await begun.promise
  return (how: 'commit' | 'roll back') => {
    end.resolve(how)
    return ended
  }
}

const customersAfter = async (db: Kysely<Database>, cursor: number) =>
  (await loadChanges(db, null, cursor, 100)).map(({ customerId }) => customerId)

describe('the change log', () => {
  it('ends before a transaction under way, so that no reader passes it', async () => {
    const { db } = await newDatabase()
    await append(db, change(1))
    const end = await beginAppend(db, 2)
    await append(db, change(3))
    expect(await customersAfter(db, 0)).toEqual(['cus_1'])
    expect(await logEnd(db)).toMatchObject({ isBehind: true })
    const reached = await latestCursor(db)
    await end('commit')
    expect(await customersAfter(db, reached)).toEqual(['cus_2', 'cus_3'])
    expect(await logEnd(db)).toMatchObject({ isBehind: false })
  })

  it('has what waited for a transaction after it, also by the holder of a lease', async () => {
    const { db, url } = await newDatabase()
    await sql`insert into settings values ('lease.test', 'holder 1')`.execute(db)
    const fenced = openPostgres({ url, connections: 10, statementTimeoutMs: 5_000 }, 'write', {
      holding: { lease: 'lease.test', holder: 'holder' },
    })
    const appendLocked = (own: Kysely<Database>, n: number, meanwhile: () => Promise<void> | undefined) =>
      beside(own, async (trx) => {
        await engineOf(trx).lock(trx, ['the same'])
        await sql`select 1`.execute(trx)
        await meanwhile()
        await appendChanges(trx, [change(n)])
      })
    let waiting: Promise<void> | undefined
    await appendLocked(db, 1, () => {
      waiting = appendLocked(fenced, 2, () => undefined)
      return eventually(async () => {
        const { rows } = await sql`select from pg_locks where not granted`.execute(db)
        expect(rows).toHaveLength(1)
      })
    })
    await waiting
    expect(await customersAfter(db, 0)).toEqual(['cus_1', 'cus_2'])
    await fenced.destroy()
  })

  it('is waited for by a run of sync, as far as it was written before', async () => {
    const { db } = await newDatabase()
    const end = await beginAppend(db, 1)
    await append(db, change(2))
    const readable = untilReadable(db).then(() => customersAfter(db, 0))
    expect(await customersAfter(db, 0)).toEqual([])
    await end('commit')
    expect(await readable).toEqual(['cus_1', 'cus_2'])
  })

  it('goes on once that one has ended without a change', async () => {
    const { db } = await newDatabase()
    const end = await beginAppend(db, 1)
    await append(db, change(2))
    expect(await customersAfter(db, 0)).toEqual([])
    expect(await end('roll back')).toBe('rolled back')
    expect(await customersAfter(db, 0)).toEqual(['cus_2'])
  })

  it('says that it may go back while a transaction is under way anywhere that is older than a change', async () => {
    const [{ db }, { url: elsewhere }] = [await newDatabase(), await newDatabase()]
    await append(db, change(1))
    await eventually(async () => expect(await logEnd(db)).toMatchObject({ mayGoBack: false }))
    const other = new pg.Client({ connectionString: elsewhere })
    await other.connect()
    await other.query("begin; insert into settings values ('under way', '')")
    await append(db, change(2))
    expect(await logEnd(db)).toMatchObject({ mayGoBack: true })
    await other.query('rollback')
    await other.end()
    await eventually(async () =>
      expect(await logEnd(db)).toMatchObject({ isBehind: false, mayGoBack: false }),
    )
  })

  it('waits for no transaction of another database, also for a user who may see no other’s sessions', async () => {
    const [{ db, url }, { url: elsewhere }] = [await newDatabase(), await newDatabase()]
    const other = new pg.Client({ connectionString: elsewhere })
    await other.connect()
    await other.query("begin; insert into settings values ('under way', '')")
    const owner = new pg.Client({ connectionString: url })
    await owner.connect()
    const user = `reader_${process.pid}_${made}`
    await owner.query(
      `create role ${user} login password 'reader'; grant select on all tables in schema public to ${user}`,
    )
    await append(db, change(1))
    const own = Object.assign(new URL(url), { username: user, password: 'reader' })
    const reader = new pg.Client({ connectionString: own.href })
    await reader.connect()
    // One that ends while the log is read is waited for, since nobody can tell any more where it was.
    for (const client of [owner, reader])
      await eventually(async () => {
        const { rows } = await client.query('select customer_id from changes')
        expect(rows).toEqual([{ customer_id: 'cus_1' }])
      })
    await other.query('rollback')
    await owner.query(`drop owned by ${user}; drop role ${user}`)
    for (const client of [other, owner, reader]) await client.end()
  })

  it('keeps the order of transactions of very many changes', async () => {
    const { db } = await newDatabase()
    const many = Array.from({ length: 9_000 }, (_, n) => change(n))
    await beside(db, async (trx) => {
      for (const some of [many.slice(0, 10), many.slice(10)]) await appendChanges(trx, some)
    })
    await append(db, change(9_000))
    const found = await loadChanges(db, null, 0, 10_000)
    expect(found.map(({ customerId }) => customerId)).toEqual(
      [...many, change(9_000)].map((one) => one.customerId),
    )
  })

  it('begins a new epoch behind all that is stored where the rows came from a dump', async () => {
    const { db } = await newDatabase()
    await ensureChangeLogEpoch(db)
    await settleNumbers(db)
    const epoch = await changeLogEpoch(db)
    await append(db, change(1))
    await settleNumbers(db)
    expect(await changeLogEpoch(db)).toBe(epoch)
    // What a dump restores was written by another transaction; here, on a server whose own have only begun.
    await sql`update change_log_base set xid = xid + 1000000`.execute(db)
    await settleNumbers(db)
    expect(await changeLogEpoch(db)).not.toBe(epoch)
    await append(db, change(2))
    expect(await customersAfter(db, 0)).toEqual(['cus_1', 'cus_2'])
    const settled = await changeLogEpoch(db)
    await settleNumbers(db)
    expect(await changeLogEpoch(db)).toBe(settled)
  })

  it('is not made of an older one while another program reads that', async () => {
    const options = await postgresAt('an older change log', undefined, 'template0')
    const older = openPostgres(options, 'migrate')
    await migrate(
      older,
      MIGRATIONS.filter(({ name }) => name < '0016'),
    )
    await older.destroy()
    const reader = new pg.Client({ connectionString: options.url })
    await reader.connect()
    await reader.query('begin; select from changes')
    const open = () => openPostgresStore(options, DOCUMENTED_POLICY, (db) => ({ close: () => db.destroy() }))
    await expect(open()).rejects.toThrow('while another program reads its tables')
    await reader.query('rollback')
    const store = await open()
    expect(await latestCursor(store.reader)).toBe(0)
    await Promise.all([store.close(), reader.end()])
  })

  it('takes what an older version appends, at its end', async () => {
    const { db } = await newDatabase()
    await append(db, change(1))
    // As version 1.0.0 does: alone, and without a number.
    await db.transaction().execute((trx) =>
      sql`insert into changes (at, environment, customer_id, product_id, before, after, cause_kind)
        select at, environment, 'cus_' || n, product_id, before, after, cause_kind
        from changes, generate_series(2, 3) as n order by n`.execute(trx),
    )
    await append(db, change(4))
    expect(await customersAfter(db, 0)).toEqual(['cus_1', 'cus_2', 'cus_3', 'cus_4'])
  })
})

it('events have rising numbers, also after those that an older version has numbered itself', async () => {
  const { db } = await newDatabase()
  const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => NOW })
  const storedIds = async () => await db.selectFrom('events').select('event_id').orderBy('seq').execute()
  await writeBatch([grantOf(1)])
  // As version 1.0.0 does: from the newest one on, without drawing a number.
  await sql`insert into events (seq, environment, event_id, endpoint, received_at, headers, body_sha256, last_received_at,
      disposition, normalizer_version)
    select max(seq) + n, 'live', 'evt_older_' || n, 'live', 0, 'null', '', 0, 'ignored', 1
    from events, generate_series(1, 5) as n group by n`.execute(db)
  await writeBatch([grantOf(2)])
  await writeBatch([grantOf(3)])
  expect((await storedIds()).map(({ event_id: id }) => id)).toEqual([
    'evt_1',
    ...[1, 2, 3, 4, 5].map((n) => `evt_older_${n}`),
    'evt_2',
    'evt_3',
  ])
})

it('a commit is announced after it, and once for many', async () => {
  const { db: _, url } = await newDatabase()
  const announcing = openPostgres({ url, connections: 10, statementTimeoutMs: 5_000 }, 'write', {
    announcing: 'one',
  })
  const listener = new pg.Client({ connectionString: url })
  await listener.connect()
  const heard: string[] = []
  listener.on('notification', ({ payload = '' }) => heard.push(payload))
  await listener.query('listen latchkey')
  await Promise.all([1, 2, 3].map((n) => append(announcing, change(n))))
  await eventually(() => expect(heard).toContain('one'))
  expect(heard.length).toBeLessThan(3)
  await announcing.destroy()
  await listener.end()
})
