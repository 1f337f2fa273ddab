import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { isStoreBroken, isStoreBusy } from '../../../src/store/engine.js'
import { setSetting } from '../../../src/store/settings.js'
import { openDatabase } from '../../../src/store/sqlite/dialect.js'
import { open, temporaryFile, temporaryStore } from '../temporary-store.js'

describe('a database opened to write', () => {
  it.each([
    ['journal_mode', 'wal'],
    ['synchronous', 2],
    ['foreign_keys', 1],
    ['wal_autocheckpoint', 4_000],
    ['journal_size_limit', 67_108_864],
  ])('has %s at %s', async (pragma, value) => {
    const db = await temporaryStore()
    const { rows } = await sql`pragma ${sql.raw(pragma)}`.execute(db)
    expect(rows).toEqual([{ [pragma]: value }])
  })

  it('waits for a lock only briefly, since waiting blocks the thread', async () => {
    const { rows } = await sql<{ timeout: number }>`pragma busy_timeout`.execute(await temporaryStore())
    expect(rows[0]?.timeout).toBeLessThanOrEqual(100)
  })

  it('takes the write lock when a transaction begins, and says busy to the next', async () => {
    const file = temporaryFile()
    const [first, second] = [await temporaryStore(file), open(file)]
    await first.transaction().execute(async () => {
      const begin = second.transaction().execute(async () => 'began')
      await expect(begin).rejects.toSatisfy(isStoreBusy)
    })
    await expect(second.transaction().execute(async () => 'began')).resolves.toBe('began')
  })

  it('leaves one file when it is closed, even where no query ever ran', async () => {
    const file = temporaryFile()
    await (await temporaryStore(file)).destroy()
    await openDatabase(file, { readOnly: false }).destroy()
    expect(readdirSync(dirname(file))).toEqual(['latchkey.db'])
  })
})

describe('a database opened to read', () => {
  it('refuses to write', async () => {
    const file = temporaryFile()
    await temporaryStore(file)
    const write = open(file, true)
      .transaction()
      .execute((trx) => setSetting(trx, 'policy', '{}'))
    await expect(write).rejects.toMatchObject({ code: 'SQLITE_READONLY' })
  })
})

describe('a file that is no database', () => {
  it('is told by its name, and as broken, not as busy', () => {
    const file = temporaryFile()
    mkdirSync(dirname(file))
    writeFileSync(file, 'This was never a database, only a text of some length.'.repeat(20))
    const error = errorOf(() => openDatabase(file, { readOnly: false }))
    expect(error).toMatchObject({ code: 'store_unavailable', message: expect.stringContaining(file) })
    const { cause } = error as Error
    expect([isStoreBroken(cause), isStoreBusy(cause)]).toEqual([true, false])
  })
})

describe('an error that is not the database’s own', () => {
  it('is neither busy nor broken', () => {
    const error = Object.assign(new Error('A socket timed out.'), { code: 'ETIMEDOUT' })
    expect([isStoreBroken(error), isStoreBusy(error)]).toEqual([false, false])
  })
})

function errorOf(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  throw new Error('Nothing was thrown.')
}
