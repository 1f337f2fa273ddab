import { existsSync, readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { ENGINE, openStoreAt } from '../world.js'
import { type Answered, call, type RunningDaemon } from './running-daemon.js'

export function erase(daemon: RunningDaemon, customerId: string, body?: unknown): Promise<Answered> {
  return call(daemon, 'DELETE', `/customers/${customerId}`, body)
}

/** Which of these words any byte of the database or its log holds; on PostgreSQL, any value in any table. */
export async function foundIn(databaseFile: string, words: readonly string[]): Promise<readonly string[]> {
  const bytes = ENGINE === 'sqlite' ? bytesOf(databaseFile) : [await valuesIn(databaseFile)]
  return words.filter((word) => bytes.some((one) => one.includes(word)))
}

function bytesOf(databaseFile: string): readonly Buffer[] {
  return [databaseFile, `${databaseFile}-wal`]
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file))
}

async function valuesIn(databaseFile: string): Promise<string> {
  const db = await openStoreAt(databaseFile, { readOnly: true })
  const values: unknown[] = []
  for (const { name } of await db.introspection.getTables()) {
    const { rows } = await sql<object>`select * from ${sql.table(name)}`.execute(db)
    values.push(...rows.flatMap((row) => Object.values(row)))
  }
  await db.destroy()
  return values.map(String).join('\n')
}
