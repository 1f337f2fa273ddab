import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import { restore } from '../../src/operations/restore.js'
import { appendChanges, changeLogEpoch } from '../../src/store/changes.js'
import { migrate, pendingMigrations } from '../../src/store/migrate.js'
import { backUp } from '../../src/store/sqlite/copy.js'
import { lockStore } from '../../src/store/sqlite/file.js'
import { loadSyncSettings } from '../../src/store/sync-state.js'
import { cutInHalf, damage, filledStore, rowsIn } from '../store/filled-store.js'
import { open, temporaryFile } from '../store/temporary-store.js'

const AT = { now: Date.UTC(2026, 2, 1, 12), eraseAgain: async () => 0 }
const NOTHING = { active: false, status: 'none', since: null, until: null } as const
const CHANGE = {
  at: 1,
  environment: 'live',
  customerId: 'cus_1',
  productId: 'pro_1',
  before: NOTHING,
  after: { ...NOTHING, active: true, status: 'active' },
  cause: { kind: 'clock', eventId: null },
} as const
const KEPT = '.before-restore-20260301T120000.000Z'

/** A backup with that many rows, in a folder of its own. */
async function backupOf(rows: number): Promise<string> {
  const file = temporaryFile()
  await filledStore(file, rows)
  const target = join(dirname(file), 'backup.db')
  await backUp(file, target, { overwrite: false })
  return target
}

/** A database as a killed daemon leaves it: with a log that holds rows which the database itself lacks. */
async function killedStore(rows: number): Promise<string> {
  const file = temporaryFile()
  await filledStore(file, rows)
  const killed = temporaryFile()
  lockStore(killed).release()
  for (const suffix of ['', '-wal', '-shm']) copyFileSync(`${file}${suffix}`, `${killed}${suffix}`)
  expect(statSync(`${killed}-wal`).size).toBeGreaterThan(0)
  return killed
}

/** Everything in a folder, byte by byte. */
function contentsOf(folder: string): ReadonlyMap<string, string> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'base64')]))
}

describe('restoring', () => {
  it('leaves sync paused, since what is given on the platforms may be newer', async () => {
    const file = temporaryFile()
    await restore(file, await backupOf(1), AT)
    const db = open(file, true)
    expect(await loadSyncSettings(db)).toMatchObject({ pausedAt: AT.now })
  })

  it('forgets what was still to be told, since it may have been told since, and contradicted', async () => {
    const source = temporaryFile()
    await filledStore(source, 1)
    await open(source, false)
      .transaction()
      .execute(async (trx) => {
        await appendChanges(trx, [CHANGE])
        const message = {
          cursor: 1,
          epoch: 'e',
          environment: 'live',
          customer_id: 'cus_1',
          queued_at: 1,
        } as const
        await trx.insertInto('messages').values(message).execute()
      })
    const backup = join(dirname(source), 'backup.db')
    await backUp(source, backup, { overwrite: false })
    expect(await open(backup, true).selectFrom('messages').selectAll().execute()).toHaveLength(1)
    const file = temporaryFile()
    await restore(file, backup, AT)
    expect(await open(file, true).selectFrom('messages').selectAll().execute()).toEqual([])
  })

  it('puts the backup in the place of a database, and keeps that with what was in its log', async () => {
    const backup = await backupOf(3)
    const file = await killedStore(7)
    expect(await restore(file, backup, AT)).toEqual({
      file,
      keptAs: `${file}${KEPT}`,
      migrated: [],
      membershipsKept: 0,
      erasedAgain: 0,
    })
    expect(rowsIn(file)).toBe(3)
    expect(rowsIn(`${file}${KEPT}`)).toBe(7)
    expect(rowsIn(backup)).toBe(3)
    expect(statSync(file).nlink).toBe(1)
    for (const name of readdirSync(dirname(file)).filter((name) => !name.includes('before-restore'))) {
      expect([name, statSync(join(dirname(file), name)).mode & 0o777]).toEqual([name, 0o600])
    }
    expect(readdirSync(dirname(file)).filter((name) => name.includes('.part'))).toEqual([])
  })

  it('takes no backup that somebody gave a trigger or a view', async () => {
    const file = await killedStore(7)
    for (const change of [
      'create trigger swallow after insert on events begin delete from events; end',
      'create view everything as select * from events',
    ]) {
      const backup = await backupOf(3)
      new Sqlite(backup).exec(change).close()
      await expect(restore(file, backup, AT)).rejects.toMatchObject({ code: 'not_a_backup' })
    }
    expect(rowsIn(file)).toBe(7)
  })

  it('can be undone with what it kept', async () => {
    const file = await killedStore(7)
    const { keptAs } = await restore(file, await backupOf(3), AT)
    await restore(file, keptAs ?? '', { ...AT, now: AT.now + 1 })
    expect(rowsIn(file)).toBe(7)
  })

  it('takes no log that is left without its database for one of the backup', async () => {
    const file = await killedStore(7)
    renameSync(file, `${file}.away`)
    expect(await restore(file, await backupOf(3), AT)).toMatchObject({ keptAs: null })
    expect(rowsIn(file)).toBe(3)
    expect(existsSync(`${file}${KEPT}-wal`)).toBe(true)
  })

  it('makes the database where there was none', async () => {
    const file = temporaryFile()
    expect(await restore(file, await backupOf(3), AT)).toEqual({
      file,
      keptAs: null,
      migrated: [],
      membershipsKept: null,
      erasedAgain: 0,
    })
    expect(rowsIn(file)).toBe(3)
  })

  it('begins another epoch of the change log each time', async () => {
    const backup = await backupOf(1)
    const file = temporaryFile()
    const epochs = [await changeLogEpoch(open(backup, true))]
    for (const now of [AT.now, AT.now + 1]) {
      await restore(file, backup, { ...AT, now })
      epochs.push(await changeLogEpoch(open(file, true)))
    }
    expect(new Set(epochs).size).toBe(3)
  })

  it('brings an older backup up to date, and leaves the backup as it is', async () => {
    const backup = temporaryFile()
    const older = open(backup)
    await migrate(older, MIGRATIONS.slice(0, -1))
    await older.destroy()
    const file = temporaryFile()
    const newest = MIGRATIONS.at(-1)?.name
    expect(await restore(file, backup, AT)).toMatchObject({ migrated: [newest] })
    expect(await pendingMigrations(open(file, true))).toEqual([])
    expect(await pendingMigrations(open(backup, true))).toEqual([newest])
  })

  it('replaces a database that an interrupted restore left under two names, and keeps it under both', async () => {
    const backup = await backupOf(3)
    const file = await killedStore(7)
    const earlier = `${file}.before-restore-20260201T000000.000Z`
    linkSync(file, earlier)
    writeFileSync(`${file}.latchkey.part`, 'half a copy')
    expect(await restore(file, backup, AT)).toMatchObject({ keptAs: `${file}${KEPT}` })
    expect([rowsIn(file), rowsIn(`${file}${KEPT}`), rowsIn(earlier)]).toEqual([3, 7, 7])
    expect(statSync(file).nlink).toBe(1)
    expect(readdirSync(dirname(file)).filter((name) => name.includes('.part'))).toEqual([])
  })

  it('replaces a file that can’t be read, and keeps it', async () => {
    const file = temporaryFile()
    mkdirSync(dirname(file))
    writeFileSync(file, 'no database '.repeat(1_000))
    await restore(file, await backupOf(3), AT)
    expect(rowsIn(file)).toBe(3)
    expect(readFileSync(`${file}${KEPT}`, 'utf8')).toMatch(/^no database/)
  })

  it('shows how far it is', async () => {
    const seen: [number, number][] = []
    const onProgress = (...progress: [number, number]) => void seen.push(progress)
    await restore(temporaryFile(), await backupOf(10_000), { ...AT, onProgress })
    const [copied, total] = seen.at(-1) ?? [0, 0]
    expect(copied).toBeGreaterThan(0)
    expect(copied).toBeLessThanOrEqual(total)
  })
})

describe('a file that can not be restored', () => {
  const otherDatabase = (path: string) => {
    const other = new Sqlite(path)
    other.exec('create table songs (title text)')
    other.close()
  }
  const newerStore = async (path: string) => {
    const db = open(path)
    await migrate(db, [...MIGRATIONS, { name: '9001-newer', create: () => ({ up: async () => {} }) }])
    await db.destroy()
  }

  const takeAnother = / is damaged: [^\n]+\. Take another backup\.$/

  it.each<[string, string, RegExp, (path: string) => unknown]>([
    ['damaged', 'backup_damaged', takeAnother, damage],
    ['cut in half', 'backup_damaged', takeAnother, cutInHalf],
    [
      'no database',
      'backup_damaged',
      takeAnother,
      (path) => writeFileSync(path, 'no database '.repeat(1_000)),
    ],
    ['empty', 'not_a_backup', /is empty/, (path) => writeFileSync(path, '')],
    ['a folder', 'not_a_backup', /is a folder/, (path) => mkdirSync(path)],
    ['a database of something else', 'not_a_backup', /of something else/, otherDatabase],
    ['written by a newer version', 'schema_too_new', /newer/, newerStore],
  ])('since it is %s says so, and leaves every byte of the store', async (what, code, told, make) => {
    const isMade = what === 'damaged' || what === 'cut in half'
    const backup = isMade ? await backupOf(500) : join(dirname(await backupOf(1)), 'other.db')
    await make(backup)
    const file = await killedStore(7)
    const before = contentsOf(dirname(file))
    const message = expect.stringMatching(told)
    await expect(restore(file, backup, AT)).rejects.toMatchObject({ code, message })
    expect(contentsOf(dirname(file))).toEqual(before)
    expect(rowsIn(file)).toBe(7)
  })

  it('since it is not there leaves no trace', async () => {
    const file = temporaryFile()
    await expect(restore(file, `${file}.gone`, AT)).rejects.toMatchObject({ code: 'backup_missing' })
    expect(existsSync(dirname(file))).toBe(false)
  })

  it('since the store is in use leaves it alone', async () => {
    const backup = await backupOf(3)
    const file = await killedStore(7)
    const lock = lockStore(file)
    onTestFinished(() => lock.release())
    const before = contentsOf(dirname(file))
    await expect(restore(file, backup, AT)).rejects.toMatchObject({ code: 'store_in_use' })
    expect(contentsOf(dirname(file))).toEqual(before)
  })
})
