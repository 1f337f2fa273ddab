import { type Kysely, sql, type Transaction } from 'kysely'
import { bulkLookup } from './bulk.js'
import type { Database, SettingsTable } from './schema.js'

/** Prepared once: every batch asks for some. */
const select = bulkLookup(
  ['key'],
  (isTold) => sql<SettingsTable>`select key, value from settings where ${isTold}`,
)

/** Null where the setting was never made. */
export async function getSetting(db: Kysely<Database>, key: string): Promise<string | null> {
  const [row] = await select(db, [[key]])
  return row?.value ?? null
}

export async function setSetting(trx: Transaction<Database>, key: string, value: string): Promise<void> {
  await trx
    .insertInto('settings')
    .values({ key, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute()
}
