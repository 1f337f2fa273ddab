import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { backupFileAt, newestBackupAt, pruneBackups } from '../../src/operations/backup-folder.js'
import { temporaryFile } from '../store/temporary-store.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const HOUR_MS = 3_600_000

function folderWith(...names: readonly string[]): string {
  const folder = dirname(temporaryFile())
  mkdirSync(folder, { recursive: true })
  for (const name of names) writeFileSync(join(folder, name), '')
  return folder
}

describe('a folder of backups', () => {
  it('names a file by the time when it was begun, to the millisecond', () => {
    expect(backupFileAt('/backups', NOON + 1)).toBe('/backups/latchkey-20260301T120000.001Z.db')
  })

  it('knows the newest by its name, whatever else is there', () => {
    const folder = folderWith(
      'latchkey-20260228T235959.999Z.db',
      'latchkey-20260301T120000.000Z.db',
      'latchkey-20260301T130000.000Z.db.latchkey.part',
      'latchkey-20261301T130000.000Z.db',
      'latchkey-.db',
      'notes.txt',
    )
    expect(newestBackupAt(folder, NOON)).toBe(NOON)
  })

  it('is empty where it is not there yet', () => {
    const folder = temporaryFile()
    expect(newestBackupAt(folder, NOON)).toBeNull()
    expect(pruneBackups(folder, 7, NOON)).toBe(0)
  })

  it('takes those from the future for the oldest, since the clock was set back', () => {
    const folder = folderWith()
    for (const at of [NOON, NOON + HOUR_MS, NOON - HOUR_MS]) writeFileSync(backupFileAt(folder, at), '')
    expect(newestBackupAt(folder, NOON)).toBe(NOON)
    expect(pruneBackups(folder, 1, NOON)).toBe(2)
    expect(readdirSync(folder)).toEqual(['latchkey-20260301T120000.000Z.db'])
  })

  it('keeps the newest few, and everything that is not its own', () => {
    const folder = folderWith('latchkey.db', 'latchkey-monday.db', 'other-20260101T000000.000Z.db')
    for (const hours of [3, 0, 2, 1]) writeFileSync(backupFileAt(folder, NOON + hours * HOUR_MS), '')
    const begun = `${backupFileAt(folder, NOON)}.latchkey.part`
    for (const name of [begun, `${begun}-journal`]) writeFileSync(name, '')
    expect(pruneBackups(folder, 2, NOON + 9 * HOUR_MS)).toBe(2)
    expect(readdirSync(folder).sort()).toEqual([
      'latchkey-20260301T140000.000Z.db',
      'latchkey-20260301T150000.000Z.db',
      'latchkey-monday.db',
      'latchkey.db',
      'other-20260101T000000.000Z.db',
    ])
  })
})
