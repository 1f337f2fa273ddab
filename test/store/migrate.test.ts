import { type Kysely, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { NamedMigration } from '../../migrations/column-types.js'
import { MIGRATIONS } from '../../migrations/index.js'
import { lookupValue } from '../../src/store/customers.js'
import { migrate, pendingMigrations } from '../../src/store/migrate.js'
import type { Database } from '../../src/store/schema.js'
import { getSetting } from '../../src/store/settings.js'
import { open, temporaryFile, temporaryStore } from './temporary-store.js'

const NAMES = MIGRATIONS.map(({ name }) => name)

const addNotes: NamedMigration = {
  name: '9001-notes',
  create: ({ text, tableOptions }) => ({
    up: async (db) => {
      await db.schema.createTable('notes').addColumn('note', text).modifyEnd(tableOptions).execute()
      await sql`drop table changes`.execute(db)
    },
  }),
}

const fail: NamedMigration = {
  name: '9002-fails',
  create: () => ({
    up: async (db) => {
      await db.schema.alterTable('events').addColumn('half_done', 'text').execute()
      throw new Error('The step failed.')
    },
  }),
}

it('finds the customers of an older store by their names on the platforms', async () => {
  const db = open(temporaryFile())
  await migrate(
    db,
    MIGRATIONS.filter(({ name }) => name < '0014'),
  )
  const fact = (value: string) => ({ value, at: 1, by: 'evt_1' })
  const rows = Array.from({ length: 1_001 }, (_, i) => ({
    environment: i % 2 === 0 ? ('live' as const) : ('sandbox' as const),
    customer_id: `cus_${i}`,
    facts: JSON.stringify(
      i === 0 ? {} : { communityUsername: fact(`Ada_${i}`), email: fact('ada@example.com') },
    ),
    deleted_at: null,
  }))
  for (const row of rows) await db.insertInto('customers').values(row).execute()
  await migrate(db)
  const lookups = await db.selectFrom('customer_lookups').selectAll().execute()
  expect(lookups).toHaveLength(1_000)
  const name = 'communityUsername'
  for (const row of [
    { environment: 'live', name, value: 'ada_2', customer_id: 'cus_2' },
    { environment: 'sandbox', name, value: 'ada_999', customer_id: 'cus_999' },
  ])
    expect(lookups).toContainEqual(row)
})

it('shortens what an older store has in full of long emails, and what it adds of long names', async () => {
  const db = open(temporaryFile())
  await migrate(
    db,
    MIGRATIONS.filter(({ name }) => name < '0014'),
  )
  const [email, username] = ['é'.repeat(300), 'ü'.repeat(300)]
  const own = { environment: 'live', customer_id: 'cus_1' } as const
  const facts = { communityUsername: { value: username, at: 1, by: 'evt_1' } }
  await db
    .insertInto('customers')
    .values({ ...own, facts: JSON.stringify(facts), deleted_at: null })
    .execute()
  for (const value of [email, 'e'.repeat(255)]) {
    await db
      .insertInto('customer_lookups')
      .values({ ...own, name: 'email', value })
      .execute()
  }
  await migrate(db)
  const stored = await db.selectFrom('customer_lookups').select(['name', 'value']).orderBy('value').execute()
  expect(stored).toEqual([
    { name: 'email', value: 'e'.repeat(255) },
    { name: 'email', value: lookupValue('email', email) },
    { name: 'communityUsername', value: lookupValue('communityUsername', username) },
  ])
  expect(lookupValue('email', email)).toMatch(/^é{255}…[0-9a-f]{64}$/)
})

describe('migrating', () => {
  it('runs what is pending, in order, and then nothing', async () => {
    const db = open(temporaryFile())
    expect(await pendingMigrations(db)).toEqual(NAMES)
    expect(await migrate(db)).toEqual(NAMES)
    expect(await pendingMigrations(db)).toEqual([])
    expect(await migrate(db)).toEqual([])
  })

  it('leaves the old schema and its rows whole where a step fails, also what ran before it', async () => {
    const db = await temporaryStore()
    await db.insertInto('settings').values({ key: 'policy', value: '{}' }).execute()
    const before = await schemaOf(db)
    await expect(migrate(db, [...MIGRATIONS, addNotes, fail])).rejects.toThrow('The step failed.')
    expect(await schemaOf(db)).toEqual(before)
    expect(await getSetting(db, 'policy')).toBe('{}')
    expect(await migrate(db, [...MIGRATIONS, addNotes])).toEqual(['9001-notes'])
  })

  it('refuses a schema that a newer version wrote, and leaves it as it is', async () => {
    const db = await temporaryStore()
    await migrate(db, [...MIGRATIONS, addNotes])
    const before = await schemaOf(db)
    await expect(migrate(db)).rejects.toMatchObject({ code: 'schema_too_new' })
    await expect(pendingMigrations(db)).rejects.toMatchObject({ code: 'schema_too_new' })
    expect(await schemaOf(db)).toEqual(before)
  })

  it('lets a reader ask what is pending', async () => {
    const file = temporaryFile()
    await temporaryStore(file)
    expect(await pendingMigrations(open(file, true), [...MIGRATIONS, addNotes])).toEqual(['9001-notes'])
  })

  it('makes strict tables', async () => {
    const db = await temporaryStore()
    const { rows } = await sql<{ name: string }>`
      select name from pragma_table_list where type = 'table' and not strict
      and name not like 'sqlite_%' and name not like 'schema_migrations%'
    `.execute(db)
    expect(rows).toEqual([])
  })
})

async function schemaOf(db: Kysely<Database>): Promise<readonly unknown[]> {
  return (await sql`select name, sql from sqlite_master order by name`.execute(db)).rows
}
