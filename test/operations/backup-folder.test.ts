import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createBackupFolder } from '../../src/operations/backup-folder.js'
import { insertEvents } from '../../src/store/events.js'
import { newEvent, paymentEvent } from '../store/sample-events.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const HOUR_MS = 3_600_000

function folderWith(...names: readonly string[]): string {
  const folder = dirname(temporaryFile())
  mkdirSync(folder, { recursive: true })
  for (const name of names) writeFileSync(join(folder, name), '')
  return folder
}

/** A database with that many events, in one file. */
async function storeOf(file: string, count: number): Promise<void> {
  const db = await temporaryStore(file)
  const events = Array.from({ length: count }, (_, n) => newEvent(paymentEvent({ id: `evt_${n}` })))
  await db.transaction().execute((trx) => insertEvents(trx, events))
  await db.destroy()
}

describe('a folder of backups', () => {
  it('names a file by the time when it was begun, to the millisecond', () => {
    const { fileOf } = createBackupFolder('/backups', 7)
    expect(fileOf(NOON + 1)).toBe('/backups/latchkey-20260301T120000.001Z.db')
  })

  it('knows the newest by its name, whatever else is there', () => {
    const folder = folderWith(
      'latchkey-20260228T235959.999Z.db',
      'latchkey-20260301T120000.000Z.db',
      'latchkey-20260301T130000.000Z.db.0123456789ab.part',
      'latchkey-20261301T130000.000Z.db',
      'latchkey-.db',
      'notes.txt',
    )
    expect(createBackupFolder(folder, 7).newestAt(NOON)).toBe(NOON)
  })

  it('is empty where it is not there yet', () => {
    const backups = createBackupFolder(temporaryFile(), 7)
    expect(backups.newestAt(NOON)).toBeNull()
    expect(backups.prune(NOON)).toEqual({ removed: 0, spared: [] })
  })

  it('takes those from the future for the oldest, since the clock was set back', () => {
    const folder = folderWith()
    const backups = createBackupFolder(folder, 1)
    for (const at of [NOON, NOON + HOUR_MS, NOON - HOUR_MS]) writeFileSync(backups.fileOf(at), '')
    expect(backups.newestAt(NOON)).toBe(NOON)
    expect(backups.prune(NOON)).toEqual({ removed: 2, spared: [] })
    expect(readdirSync(folder)).toEqual(['latchkey-20260301T120000.000Z.db'])
  })

  it('spares those that know more events than the newest, as where the database was lost and began anew', async () => {
    const backups = createBackupFolder(folderWith(), 1)
    const [full, half, fresh] = [NOON, NOON + HOUR_MS, NOON + 2 * HOUR_MS].map(backups.fileOf) as [
      string,
      string,
      string,
    ]
    await storeOf(full, 3)
    await storeOf(half, 1)
    await storeOf(fresh, 1)
    expect(backups.prune(NOON + 9 * HOUR_MS)).toEqual({ removed: 1, spared: [full] })
    expect([full, half, fresh].map((file) => existsSync(file))).toEqual([true, false, true])
  })

  it('keeps the newest few, and everything that is not its own', () => {
    const folder = folderWith('latchkey.db', 'latchkey-monday.db', 'other-20260101T000000.000Z.db')
    const backups = createBackupFolder(folder, 2)
    for (const hours of [3, 0, 2, 1]) writeFileSync(backups.fileOf(NOON + hours * HOUR_MS), '')
    const begun = `${backups.fileOf(NOON)}.0123456789ab.part`
    for (const name of [begun, `${begun}-journal`]) writeFileSync(name, '')
    expect(backups.prune(NOON + 9 * HOUR_MS)).toEqual({ removed: 2, spared: [] })
    expect(readdirSync(folder).sort()).toEqual([
      'latchkey-20260301T140000.000Z.db',
      'latchkey-20260301T150000.000Z.db',
      'latchkey-monday.db',
      'latchkey.db',
      'other-20260101T000000.000Z.db',
    ])
  })
})
