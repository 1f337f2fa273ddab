import { readdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, it } from 'vitest'
import { MIGRATIONS } from '../../../migrations/index.js'
import { pendingMigrations } from '../../../src/store/migrate.js'
import { bringUpToDate } from '../../../src/store/sqlite/store.js'
import { filledStore, rowsIn } from '../filled-store.js'
import { open, temporaryFile } from '../temporary-store.js'

const NEWER = [...MIGRATIONS, { name: '9001-newer', create: () => ({ up: async () => {} }) }]

it('keeps a database as it is before the first step that is pending', async () => {
  const file = temporaryFile()
  await filledStore(file, 5)
  const db = open(file)
  const kept = `${file}.before-9001-newer`
  expect(await bringUpToDate(db, file, NEWER)).toEqual({ steps: ['9001-newer'], backup: kept })
  expect(rowsIn(kept)).toBe(5)
  expect(statSync(kept).mode & 0o777).toBe(0o600)
  expect(await pendingMigrations(open(kept, true), NEWER)).toEqual(['9001-newer'])
})

it('keeps the newest state where an earlier attempt failed, and kept one', async () => {
  const file = temporaryFile()
  const write = await filledStore(file, 5)
  const db = open(file)
  const broken = async () => {
    throw new Error('broken')
  }
  const failing = [...MIGRATIONS, { name: '9001-newer', create: () => ({ up: broken }) }]
  await expect(bringUpToDate(db, file, failing)).rejects.toThrow('broken')
  write(1)
  expect(rowsIn((await bringUpToDate(db, file, NEWER)).backup ?? '')).toBe(6)
})

it('keeps nothing of a new database, nor where nothing is pending', async () => {
  const file = temporaryFile()
  const db = open(file)
  expect(await bringUpToDate(db, file)).toMatchObject({ backup: null })
  expect(await bringUpToDate(db, file)).toEqual({ steps: [], backup: null })
  expect(readdirSync(dirname(file)).filter((name) => name.includes('before'))).toEqual([])
})
