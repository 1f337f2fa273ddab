import { join } from 'node:path'
import { sql } from 'kysely'
import { expect } from 'vitest'
import { readStore } from '../process/served.js'
import { foldedAnew, foldedState, storedEvents } from '../process/stored-state.js'

/**
 * What must hold after any fault: the database is sound, each acknowledged event is stored once, and what
 * stands is what all stored events come to. Answers with the ids of the stored events.
 */
export async function expectNothingLost(
  folder: string,
  acknowledged: readonly string[],
  moment?: string,
): Promise<readonly string[]> {
  expect(await integrityOf(folder), moment).toEqual(['ok'])
  const ids = (await storedEvents(folder)).map(({ event_id }) => event_id)
  const stored = new Set(ids)
  expect(stored.size, moment).toBe(ids.length)
  expect(
    acknowledged.filter((id) => !stored.has(id)),
    moment,
  ).toEqual([])
  expect(await foldedState(folder), moment).toEqual(await foldedAnew(folder))
  return ids
}

/** What SQLite finds wrong with the file; `ok` alone where it finds nothing. */
function integrityOf(folder: string): Promise<readonly string[]> {
  return readStore(folder, async (db) => {
    const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(db)
    return rows.map(({ integrity_check }) => integrity_check)
  })
}

export const databaseIn = (folder: string): string => join(folder, 'data', 'latchkey.db')
