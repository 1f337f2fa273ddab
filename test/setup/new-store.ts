import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { erasureListOf } from '../../src/people/erasure-list.js'
import { migrate } from '../../src/store/migrate.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { createFolder } from './create-folder.js'

let made: Promise<Buffer> | undefined

/**
 * Puts an empty store with the newest schema there. The steps of the schema run once in each process: they take longer
 * than all that most tests do in their stores.
 */
export async function putNewStore(file: string): Promise<void> {
  made ??= bytesOfNewStore()
  const bytes = await made
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, bytes, { mode: 0o600 })
}

/** Puts what a first start leaves where there is not even a folder for it. */
export async function putNewStoreUnlessBegun(file: string): Promise<void> {
  if (existsSync(dirname(file))) return
  await putNewStore(file)
  writeFileSync(erasureListOf(file), '', { mode: 0o600 })
}

async function bytesOfNewStore(): Promise<Buffer> {
  const folder = createFolder()
  const file = join(folder, 'latchkey.db')
  const db = openDatabase(file, { readOnly: false })
  await migrate(db)
  // The last one to close moves everything from the write-ahead log into the file.
  await db.destroy()
  const bytes = readFileSync(file)
  rmSync(folder, { recursive: true })
  return bytes
}
