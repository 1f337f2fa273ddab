import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { openPostgres } from '../../src/store/postgres/dialect.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { deliver, eventsOf, storiesOf } from '../stories.js'
import {
  answerOf,
  CONFIG,
  configuredFolder,
  databaseIn,
  ENGINE,
  everyCommand,
  failureOf,
  MAY_ALL,
  onStore,
  postgresAt,
  readStore,
  rewriteConfig,
  run,
  serveHere,
} from '../world.js'

/** Every command that only asks. */
const ASKING = [
  'check cus_1',
  'check cus_1 pro_1',
  'explain cus_1 pro_1',
  'customers cus_1',
  'changes',
  'changes --summary day',
  'check --payment pay_1 pro_1',
  'events list',
  'events show evt_0_paid',
  'events body evt_0_paid',
  'events export',
  'policy show',
  'policy diff',
  'rebuild --verify',
  'replay --dry-run',
  'sync status',
  'sync status --state due',
  'sync plan',
  'sync messages',
  'keys list',
  'doctor',
]

/** Every command that changes something. */
const CHANGING = [
  'grant cus_1 pro_1 --reason test',
  'revoke cus_1 pro_1',
  'block cus_1 --reason test',
  'unblock cus_1',
  'link cus_1 --messenger 7',
  'erase cus_1 --yes',
  'policy apply',
  'rebuild',
  'replay',
  'backfill',
  'backfill --dry-run',
  'console',
  'import /dev/null',
  'import /dev/null --dry-run',
  'sync run',
  'sync check',
  'sync pause',
  'sync resume',
  'sync replay --from 2026-01-01',
  'sync test default',
  'status',
  'reload',
  'stop',
]

/** A folder with a store that a daemon has served, and that no daemon serves now. */
async function stoppedFolder(config: object = MAY_ALL): Promise<string> {
  const folder = configuredFolder(config)
  const daemon = await serveHere(folder)
  await deliver(daemon.url, eventsOf(storiesOf(0, 2)))
  await daemon.stop()
  return folder
}

/** All that is stored: the schema, every row, and where the store is a file, every file beside it. */
async function contentOf(folder: string): Promise<object> {
  if (ENGINE === 'sqlite') {
    const data = join(folder, 'data')
    return readdirSync(data).map((name) => {
      const { mtimeMs, mode, ino } = statSync(join(data, name))
      return { name, mtimeMs, mode, ino, bytes: readFileSync(join(data, name)).toString('base64') }
    })
  }
  return readStore(folder, async (db) => {
    const columns = await sql<{ table_name: string }>`
      select table_name, column_name, data_type from information_schema.columns
      where table_schema = current_schema() order by 1, 2`.execute(db)
    const indexes = await sql`select * from pg_indexes where schemaname = current_schema() order by indexname`
    const tables = [...new Set(columns.rows.map((row) => row.table_name))]
    const rows = []
    for (const name of tables) {
      const found = await sql<{ text: string }>`select t::text as text from ${sql.table(name)} t`.execute(db)
      // A running daemon renews its lease.
      const texts = found.rows.map(({ text }) => text.replace(/^(\(lease\.\w+,"[\w-]+) \d+/, '$1'))
      rows.push([name, texts.sort()])
    }
    return { columns: columns.rows, indexes: (await indexes.execute(db)).rows, rows }
  })
}

/** Has the store be one of another version: what a program knows of a schema is the names of its steps. */
const changeSteps = (folder: string, change: (db: Kysely<Database>) => Promise<unknown>) =>
  onStore(folder, change)

const OLDER = (db: Kysely<Database>) =>
  sql`delete from schema_migrations where name = (select max(name) from schema_migrations)`.execute(db)
const NEWER = (db: Kysely<Database>) =>
  sql`insert into schema_migrations (name, timestamp) values ('9999-later', '2030-01-01T00:00:00Z')`.execute(
    db,
  )

describe('where no daemon runs, a command that asks', () => {
  it('answers, and changes nothing, also while a writer holds its lock', async () => {
    const folder = await stoppedFolder()
    const before = await contentOf(folder)
    const askAll = async () => {
      for (const words of ASKING) {
        const { stderr, ...exit } = await run(folder, words)
        // The server of these tests keeps nothing, which the doctor finds.
        if (words === 'doctor' && ENGINE === 'postgres') continue
        const expected = { words, code: 0, stderr: expect.not.stringContaining('error') }
        expect({ words, code: exit.code, stderr }).toEqual(expected)
      }
    }
    await askAll()
    expect(await contentOf(folder)).toEqual(before)
    const { url } = ENGINE === 'postgres' ? await postgresAt(databaseIn(folder)) : { url: '' }
    const holder =
      ENGINE === 'postgres'
        ? openPostgres({ url, connections: 1, statementTimeoutMs: 0 }, 'migrate')
        : openDatabase(databaseIn(folder), { readOnly: false })
    await holder.transaction().execute(askAll)
    await holder.destroy()
  })

  it('answers as the daemon does', async () => {
    const folder = await stoppedFolder()
    const timeless = (text: string) => text.replaceAll(/"(asOf|startedAt|endedAt)":"[^"]*"/g, '"$1":""')
    const asked = ASKING.filter((words) => !/^(doctor|sync status$)/.test(words))
    const answers = async () => {
      const all = []
      for (const words of asked) all.push([words, timeless((await run(folder, `${words} --json`)).stdout)])
      return all
    }
    const within = await answers()
    await serveHere(folder)
    expect(await answers()).toEqual(within)
  })

  it('shows who would gain and lose under a policy that is not in force', async () => {
    const folder = await stoppedFolder(CONFIG)
    rewriteConfig(folder, { ...CONFIG, policy: { revokeOn: { card: [], crypto: [], unknown: [] } } })
    const before = await contentOf(folder)
    expect(await answerOf(folder, 'policy diff')).toMatchObject({ gains: 1, losses: 0 })
    expect(await contentOf(folder)).toEqual(before)
  })

  it.each([
    ['an older', OLDER, 'schema_too_old', /older Latchkey.*`latchkey serve`.*`latchkey migrate`/],
    ['a newer', NEWER, 'schema_too_new', /newer Latchkey.*upgrade/i],
  ] as const)('refuses a store of %s version, says what to do, and leaves it as it is', async (...given) => {
    const [, change, code, message] = given
    const folder = await stoppedFolder()
    await changeSteps(folder, change)
    const before = await contentOf(folder)
    for (const words of ASKING) {
      if (words === 'doctor') continue
      const failed = await failureOf(folder, words)
      expect({ words, ...failed }).toMatchObject({
        words,
        code: 1,
        error: { code, message: expect.stringMatching(message) },
      })
    }
    await run(folder, 'doctor')
    expect(await contentOf(folder)).toEqual(before)
  })

  it('makes no store where there is none', async () => {
    const folder = configuredFolder()
    if (ENGINE === 'postgres') await onStore(folder, (db) => sql`drop schema public cascade`.execute(db))
    if (ENGINE === 'postgres') await onStore(folder, (db) => sql`create schema public`.execute(db))
    for (const words of ASKING) {
      if (/^(doctor|keys list)$/.test(words)) continue
      expect({ words, ...(await failureOf(folder, words)) }).toMatchObject({
        words,
        code: 1,
        error: { code: 'store_missing', message: expect.stringContaining('`latchkey serve`') },
      })
    }
    expect(await answerOf(folder, 'keys list')).toMatchObject({ keys: [{ name: 'app', lastUsedAt: null }] })
    expect(readdirSync(folder)).toEqual(['config.json'])
  })
})

it('a command that changes something needs a daemon, says how to start one, and changes nothing', async () => {
  const folder = await stoppedFolder()
  const before = await contentOf(folder)
  for (const words of CHANGING) {
    expect({ words, ...(await failureOf(folder, words)) }).toMatchObject({
      words,
      code: 1,
      error: { code: 'daemon_unreachable', message: expect.stringContaining('`latchkey serve`') },
    })
  }
  expect(await contentOf(folder)).toEqual(before)
})

it('every command asks, changes, or works with files', () => {
  const WITH_FILES =
    /^(init|serve|trigger|send|keys (create|rotate|revoke)|endpoints \w+|config check|backup|restore|compact|migrate|sandbox \w.*)$/
  const known = [...ASKING, ...CHANGING]
  const left = everyCommand().filter((name) => !known.some((words) => `${words} `.startsWith(`${name} `)))
  expect(left.filter((name) => !WITH_FILES.test(name))).toEqual([])
})

describe.runIf(ENGINE === 'postgres')('beside a daemon elsewhere, on one database', () => {
  it.each([
    ['an older', OLDER],
    ['a newer', NEWER],
  ])('of %s version, no command changes anything under it', async (_version, change) => {
    const folder = configuredFolder(MAY_ALL)
    const daemon = await serveHere(folder)
    await deliver(daemon.url, eventsOf(storiesOf(0, 2)))
    await changeSteps(folder, change)
    const elsewhere = configuredFolder(MAY_ALL)
    const { url } = await postgresAt(databaseIn(folder))
    const before = await contentOf(folder)
    for (const words of [...ASKING, ...CHANGING]) {
      const { code } = await run(elsewhere, words, { env: { LATCHKEY_DATABASE_URL: url } })
      expect({ words, code }).toEqual({ words, code: words === 'doctor' ? expect.any(Number) : 1 })
    }
    expect(await contentOf(folder)).toEqual(before)
    await deliver(daemon.url, eventsOf(storiesOf(2, 1)))
  })
})

describe.runIf(ENGINE === 'sqlite')('a database file that nobody has open', () => {
  it('is read where the files of its log are missing, and gets none', async () => {
    const folder = await stoppedFolder()
    for (const suffix of ['-wal', '-shm']) rmSync(`${databaseIn(folder)}${suffix}`, { force: true })
    const before = readdirSync(join(folder, 'data'))
    expect(await run(folder, 'check cus_1')).toMatchObject({ code: 0, stderr: '' })
    expect(readdirSync(join(folder, 'data'))).toEqual(before)
  })

  it('is read with what only the log of a killed daemon holds', async () => {
    const folder = await stoppedFolder()
    const copy = configuredFolder(MAY_ALL)
    mkdirSync(join(copy, 'data'))
    // As kill -9 leaves them: the log has not been moved into the database.
    await onStore(folder, async (db) => {
      await sql`update entitlements set status = 'active'`.execute(db)
      await sql`insert into settings (key, value) values ('in the log', '1')`.execute(db)
      for (const suffix of ['', '-wal'])
        writeFileSync(`${databaseIn(copy)}${suffix}`, readFileSync(`${databaseIn(folder)}${suffix}`))
    })
    const [database, log] = ['', '-wal'].map((suffix) => readFileSync(`${databaseIn(copy)}${suffix}`))
    expect(log?.length).toBeGreaterThan(0)
    expect(await run(copy, 'check cus_1')).toMatchObject({ code: 0, stderr: '' })
    expect(['', '-wal'].map((suffix) => readFileSync(`${databaseIn(copy)}${suffix}`))).toEqual([
      database,
      log,
    ])
  })
})
