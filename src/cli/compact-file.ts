import { statSync } from 'node:fs'
import { compact } from '../store/sqlite/compact.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { emptyLog } from '../store/sqlite/empty-log.js'
import { removeLeftBehind } from '../store/sqlite/left-behind.js'
import { lockStore } from '../store/sqlite/lock.js'
import { placeOf } from '../store/sqlite/place.js'
import { assertDatabase } from './assert-database.js'

/**
 * Writes a database that no daemon serves anew; answers with its size in bytes, before and after.
 * @throws {LatchkeyError} `store_missing`, `store_unavailable`, `store_in_use`
 */
export async function compactFile(path: string) {
  assertDatabase(path, 'write')
  const file = placeOf(path)
  const lock = lockStore(file)
  try {
    removeLeftBehind(file)
    const before = statSync(file).size
    const db = openDatabase(file, { readOnly: false })
    try {
      await compact(db)
      await emptyLog(db)
    } finally {
      await db.destroy()
    }
    return { file, before, after: statSync(file).size }
  } finally {
    lock.release()
  }
}
