import { appendFileSync, rmSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { erasureListOf } from '../../src/people/erasure-list.js'
import { migrate } from '../../src/store/migrate.js'
import { openPostgres } from '../../src/store/postgres/dialect.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { lockStore } from '../../src/store/sqlite/file.js'
import { deliveryOf } from '../ingest/wire.js'
import { deliver, eventsOf, person, type SentEvent, sentEvent, storiesOf } from '../stories.js'
import {
  answerOf,
  ask,
  configuredFolder,
  databaseIn,
  failureOf,
  MAY_ALL,
  onStore,
  postgresAt,
  type RunOptions,
  readStore,
  run,
  serveHere,
} from '../world.js'

const NOW = Date.now()
const now = () => NOW

/** Has a command use the file of its folder, and not the PostgreSQL database that stands for it. */
const ON_FILE = { env: { LATCHKEY_DATABASE_URL: '' }, now }
const moveOf = (folder: string) => ['migrate', '--from', `sqlite:${databaseIn(folder)}`]
/** For a shell, it would be in quotes. */
const TARGET = `\${env:TARGET}`

async function onFile<T>(folder: string, work: (db: Kysely<Database>) => Promise<T>): Promise<T> {
  const db = openDatabase(databaseIn(folder), { readOnly: false })
  try {
    return await work(db)
  } finally {
    await db.destroy()
  }
}

/** A folder with a SQLite database that has taken these in. */
async function storedFolder(events: readonly SentEvent[] = eventsOf(storiesOf(0, 3))): Promise<string> {
  const folder = configuredFolder(MAY_ALL)
  const write = async (db: Kysely<Database>) => {
    await migrate(db)
    const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: now })
    await writeBatch(events.map(({ body }) => deliveryOf(body, { endpoint: 'live', receivedAt: NOW })))
  }
  await onFile(folder, write)
  return folder
}

const PAID = eventsOf(storiesOf(0, 40))
const [KEPT, GONE] = [person(1), person(2)]
const ODD = [
  { id: 'another body', body: `${KEPT.events[0]?.body} ` },
  sentEvent('evt_held', 'payment.authorized', NOW, { id: 'pay_held', object: 'payment' }),
  { id: 'unusable', body: 'not JSON' },
]
const LATE = { id: 'evt_late', body: GONE.events[0]?.body.replace('evt_pay_person_2_0', 'evt_late') ?? '' }
const BY_HAND = [
  ['grant', 'cus_1', 'pro_2', '--reason', 'won'],
  ['block', 'cus_2', '--reason', 'a "chargeback", under \\review'],
  ['erase', GONE.customerId, '--yes'],
]

const ASKED = [
  ...['cus_0', 'cus_1', 'cus_2', KEPT.customerId, GONE.customerId].flatMap((customer) => [
    `check ${customer}`,
    `explain ${customer} pro_1`,
  ]),
  'events list --endpoint live --limit 100',
  'events list --disposition held',
  'events show evt_0_paid',
]

async function answersOf(folder: string, options: RunOptions) {
  const answers: Record<string, unknown> = {}
  for (const words of ASKED) answers[words] = await answerOf(folder, words, options)
  return answers
}

/** All rows of a table, in an order that both databases have. */
async function rowsOf(db: Kysely<Database>, table: string): Promise<readonly unknown[]> {
  const { rows } = await sql`select * from ${sql.table(table)}`.execute(db)
  return rows.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

/** A row in each table that has none, so that no table is compared without one. */
async function fill(db: Kysely<Database>, tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    if ((await rowsOf(db, table)).length > 0) continue
    const columns = await sql<{ type: string }>`select type from pragma_table_info(${table})`.execute(db)
    const values = columns.rows.map(({ type }) => (type.toLowerCase() === 'text' ? 'live' : 1))
    await sql`insert into ${sql.table(table)} values (${sql.join(values)})`.execute(db)
  }
}

async function tablesOf(db: Kysely<Database>): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_name not like 'schema_migrations%'
      and table_name not like 'change_log%'`.execute(db)
  return rows.map(({ name }) => name)
}

describe('latchkey migrate --from --to', () => {
  it('moves every row of every table, and a daemon goes on there as it would have on the file', async () => {
    const folder = await storedFolder([...PAID, ...KEPT.events, ...GONE.events, ...ODD])
    const before = await serveHere(folder, ON_FILE)
    for (const words of BY_HAND) await answerOf(folder, words, ON_FILE)
    await before.stop()
    const answers = await answersOf(folder, ON_FILE)
    const { cursor } = await answerOf(folder, 'check cus_0', ON_FILE)
    expect(await run(folder, 'migrate')).toMatchObject({ code: 0 })
    const tables = await readStore(folder, tablesOf)
    expect(tables.length).toBeGreaterThan(15)
    await onFile(folder, (db) => fill(db, tables))
    // As after a restore by hand.
    const erased = {
      environment: 'live',
      customerId: 'cus_3',
      eventId: 'man_3',
      at: NOW,
      actor: 'me',
      reason: null,
    }
    appendFileSync(erasureListOf(databaseIn(folder)), `${JSON.stringify(erased)}\n`)

    const env = { ...ON_FILE.env, TARGET: (await postgresAt(databaseIn(folder))).url }
    const moved = await answerOf(folder, [...moveOf(folder), '--to', TARGET], { env, now })
    expect(moved).toMatchObject({ from: databaseIn(folder), erasedAgain: 1, differences: [] })
    expect(moved.rows.erasures).toBe(2)
    expect(JSON.stringify(moved)).not.toContain(`${new URL(env.TARGET).password}@`)
    expect(Object.keys(moved.rows).toSorted()).toEqual(tables.toSorted())
    for (const table of tables) {
      const rows = await readStore(folder, (db) => rowsOf(db, table))
      expect({ table, rows }).toEqual({ table, rows: await onFile(folder, (db) => rowsOf(db, table)) })
      expect(moved.rows[table]).toBe(rows.length)
      expect(rows).not.toEqual([])
    }

    const daemon = await serveHere(folder, { now })
    expect(await answersOf(folder, { now })).toEqual(answers)
    expect((await deliver(daemon.url, PAID)).dispositions).toEqual(PAID.map(() => 'duplicate'))
    await deliver(daemon.url, [...eventsOf(storiesOf(100, 1)), LATE])
    const changes = await (await ask(daemon, `/changes?cursor=${cursor}`)).json()
    expect(changes).toMatchObject({ items: [{ customerId: 'cus_100', after: { active: true } }] })
    const bodies = await readStore(folder, (db) => rowsOf(db, 'events'))
    expect(JSON.stringify(bodies)).not.toContain(GONE.words[0])
  })

  it('moves all or nothing, and can be given again', async () => {
    const folder = await storedFolder()
    await onStore(folder, async (db) => {
      await migrate(db)
      await sql`alter table settings add constraint refusing check (key <> 'policy')`.execute(db)
    })
    expect(await failureOf(folder, moveOf(folder))).toMatchObject({
      code: 1,
      error: { code: 'store_unavailable', message: expect.stringContaining('refusing') },
    })
    expect(await readStore(folder, (db) => rowsOf(db, 'events'))).toEqual([])
    await onStore(folder, (db) => sql`alter table settings drop constraint refusing`.execute(db))
    const { stdout } = await run(folder, moveOf(folder))
    expect(stdout).toMatch(/^moved .*\/latchkey\.db to postgres:\/\/127\.0\.0\.1:\d+\/latchkey_\w+: \d+ rows/)
    expect(stdout).toContain('everything stored there matches the events\n')
    expect((await failureOf(folder, moveOf(folder))).error).toMatchObject({
      code: 'store_not_empty',
      message: expect.stringMatching(/holds events already: name an empty one/),
    })
  })

  it('names what is stored differently from what the events say, and exits 1', async () => {
    const folder = await storedFolder()
    await onFile(folder, (db) =>
      sql`update entitlements set active = 1 - active where customer_id = 'cus_0'`.execute(db),
    )
    const { code, stdout, stderr } = await run(folder, moveOf(folder))
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: expect.stringMatching(/^live {2}entitlement {2}cus_0 pro_1$/m),
      stderr: expect.stringContaining('latchkey rebuild'),
    })
  })

  it('leaves alone a store or a database that a daemon serves, and a file of another schema', async () => {
    const folder = await storedFolder()
    const lock = lockStore(databaseIn(folder))
    expect((await failureOf(folder, moveOf(folder))).error.code).toBe('store_in_use')
    lock.release()
    appendFileSync(erasureListOf(databaseIn(folder)), '{"cut\n')
    expect((await failureOf(folder, moveOf(folder))).error.message).toMatch(/^1 line of .* can't be read/)
    rmSync(erasureListOf(databaseIn(folder)))
    const onTarget = await serveHere(folder)
    await expect
      .poll(async () => (await failureOf(folder, moveOf(folder))).error.message)
      .toMatch(/^A daemon uses postgres:.*: stop it/)
    await onTarget.stop()
    await onFile(folder, (db) =>
      sql`delete from schema_migrations where name = ${MIGRATIONS.at(-1)?.name}`.execute(db),
    )
    expect((await failureOf(folder, moveOf(folder))).error).toMatchObject({
      code: 'schema_too_old',
      message: expect.stringContaining('run `latchkey migrate`'),
    })
  })

  it('says what it cannot move, and what to use instead', async () => {
    const folder = configuredFolder()
    const refused = [
      [
        '--from sqlite:a.db --to sqlite:b.db',
        'a store can only be moved from SQLite to PostgreSQL: copy a file',
      ],
      ['--from postgres://h/a --to sqlite:b.db', 'move the events with `latchkey events export`'],
      ['--from postgres://h/a --to postgres://h/b', 'use pg_dump and pg_restore'],
      ['--from mysql://h/a', '--from must be sqlite:<path>'],
      ['--to postgres://h', '--to must name a host and a database'],
      [`--to ${TARGET}`, '--to names the variable TARGET, which is not set'],
      ['--to postgres://h/b', '--from is missing'],
    ] as const
    for (const [words, message] of refused) {
      const failure = await failureOf(folder, `migrate ${words}`)
      expect(failure).toMatchObject({ code: 2, error: { message: expect.stringContaining(message) } })
    }
  })

  it('says which server cannot be reached, without its password', async () => {
    const folder = await storedFolder()
    const env = { ...ON_FILE.env, TARGET: 'postgres://somebody:very-secret@127.0.0.1:1/shop' }
    const { error } = await failureOf(folder, `migrate --to ${TARGET}`, { env })
    expect(error).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /^postgres:\/\/127\.0\.0\.1:1\/shop can't be used: PostgreSQL cannot be/,
      ),
    })
    expect((await failureOf(folder, 'migrate --from sqlite:a.db', ON_FILE)).error.message).toContain(
      '--to is missing',
    )
  })
})

it('latchkey migrate brings the schema of PostgreSQL up to date, without a daemon', async () => {
  const folder = configuredFolder()
  const steps = MIGRATIONS.map(({ name }) => name)
  const db = openPostgres(await postgresAt(databaseIn(folder), undefined, 'template1'), 'write')
  await migrate(db, MIGRATIONS.slice(0, 3))
  await db.destroy()
  expect(await answerOf(folder, 'migrate')).toEqual({ steps: steps.slice(3), backup: null })
  expect(await run(folder, 'migrate')).toMatchObject({ code: 0, stdout: 'the schema is up to date\n' })
})
