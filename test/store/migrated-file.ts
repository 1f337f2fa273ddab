import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { migrate } from '../../src/store/migrate.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { temporaryFile } from './temporary-store.js'

let migrated: Buffer | undefined

/**
 * A file of an empty store with the newest schema, in a folder that goes when the test ends. The steps run once:
 * they take longer than all that a property test does in one of its many stores.
 */
export async function migratedFile(): Promise<string> {
  const file = temporaryFile()
  migrated ??= await bytesOfNewStore()
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, migrated, { mode: 0o600 })
  return file
}

async function bytesOfNewStore(): Promise<Buffer> {
  const file = temporaryFile()
  const db = openDatabase(file, { readOnly: false })
  await migrate(db)
  // Whoever closes last moves everything from the write-ahead log into the file.
  await db.destroy()
  return readFileSync(file)
}
