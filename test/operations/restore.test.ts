import {
  appendFileSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
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
import { overwritePages, PAGE_BYTES } from '../faults/pages.js'
import { deliveryOf } from '../ingest/wire.js'
import { alterBody } from '../setup/alter-body.js'
import { cutInHalf, damage, filledStore, rowsIn } from '../store/filled-store.js'
import { open, temporaryFile } from '../store/temporary-store.js'
import { eventsOf, storiesOf } from '../stories.js'
import { configuredFolder, databaseIn, onStore, takeIn } from '../world.js'

const AT = { now: Date.UTC(2026, 2, 1, 12), eraseAgain: async () => 0 }
const LATER = { ...AT, now: AT.now + 1 }
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

/** A backup with these events. */
async function backupWith(
  bodies: readonly string[],
  change = async (_folder: string) => {},
): Promise<string> {
  const folder = configuredFolder()
  await takeIn(
    folder,
    bodies.map((body) => deliveryOf(body)),
  )
  await change(folder)
  const backup = join(folder, 'backup.db')
  await backUp(databaseIn(folder), backup, { overwrite: false })
  return backup
}

const BODIES = eventsOf(storiesOf(0, 12)).map(({ body }) => body)

/** Everything in a folder, byte by byte. */
function contentsOf(folder: string): ReadonlyMap<string, string> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'base64')]))
}

const partsBeside = (file: string) => readdirSync(dirname(file)).filter((name) => name.includes('.part'))

describe('restoring', () => {
  it('puts the backup in the place of a database, keeps that with what was in its log, and can be undone', async () => {
    const backup = await backupOf(3)
    const file = await killedStore(7)
    const keptAs = `${file}${KEPT}`
    expect(await restore(file, backup, AT)).toEqual({
      file,
      keptAs,
      migrated: [],
      altered: 0,
      membershipsKept: 0,
      eventsLeft: {},
      erasedAgain: 0,
    })
    expect([file, keptAs, backup].map(rowsIn)).toEqual([3, 7, 3])
    expect(statSync(file).nlink).toBe(1)
    for (const name of readdirSync(dirname(file)).filter((name) => !name.includes('before-restore'))) {
      expect([name, statSync(join(dirname(file), name)).mode & 0o777]).toEqual([name, 0o600])
    }
    expect(partsBeside(file)).toEqual([])
    await restore(file, keptAs, LATER)
    expect(rowsIn(file)).toBe(7)
  })

  it('makes the database where there was none, in another epoch of the change log each time, with sync paused', async () => {
    const backup = await backupOf(3)
    const file = temporaryFile()
    const made = {
      file,
      keptAs: null,
      migrated: [],
      altered: 0,
      membershipsKept: null,
      eventsLeft: null,
      erasedAgain: 0,
    }
    const epochs = [await changeLogEpoch(open(backup, true))]
    for (const at of [AT, LATER]) {
      expect(await restore(file, backup, at)).toMatchObject(at === AT ? made : { membershipsKept: 0 })
      epochs.push(await changeLogEpoch(open(file, true)))
    }
    expect(rowsIn(file)).toBe(3)
    expect(new Set(epochs).size).toBe(3)
    // What is given on the platforms may be newer.
    expect(await loadSyncSettings(open(file, true))).toMatchObject({ pausedAt: LATER.now })
  })

  it('forgets what was still to be told, since it may have been told since, and contradicted', async () => {
    const source = temporaryFile()
    await filledStore(source, 1)
    const before = { active: false, status: 'none', since: null, until: null } as const
    const about = { environment: 'live', customerId: 'cus_1', productId: 'pro_1' } as const
    const after = { ...before, active: true, status: 'active' } as const
    const message = {
      cursor: 1,
      webhook: 'default',
      epoch: 'e',
      type: 'entitlement.granted',
      environment: 'live',
      customer_id: 'cus_1',
      queued_at: 1,
    } as const
    const db = open(source)
    await db.transaction().execute(async (trx) => {
      await appendChanges(trx, [{ at: 1, ...about, before, after, cause: { kind: 'clock', eventId: null } }])
      await trx.insertInto('messages').values(message).execute()
    })
    const backup = join(dirname(source), 'backup.db')
    await backUp(source, backup, { overwrite: false })
    const messagesIn = (file: string) => open(file, true).selectFrom('messages').selectAll().execute()
    expect(await messagesIn(backup)).toHaveLength(1)
    const file = temporaryFile()
    await restore(file, backup, AT)
    expect(await messagesIn(file)).toEqual([])
  })

  it('takes no log that is left without its database for one of the backup', async () => {
    const file = await killedStore(7)
    renameSync(file, `${file}.away`)
    expect(await restore(file, await backupOf(3), AT)).toMatchObject({ keptAs: null })
    expect(rowsIn(file)).toBe(3)
    expect(existsSync(`${file}${KEPT}-wal`)).toBe(true)
  })

  it('brings an older backup up to date, and leaves the backup as it is', async () => {
    const backup = temporaryFile()
    const older = open(backup)
    await migrate(older, MIGRATIONS.slice(0, -1))
    await older.destroy()
    const file = temporaryFile()
    const newest = MIGRATIONS.at(-1)?.name
    expect(await restore(file, backup, AT)).toMatchObject({ migrated: [newest] })
    const pending = [file, backup].map((one) => pendingMigrations(open(one, true)))
    expect(await Promise.all(pending)).toEqual([[], [newest]])
  })

  it('replaces a database that an interrupted restore left under two names, and keeps it under both', async () => {
    const backup = await backupOf(3)
    const file = await killedStore(7)
    const earlier = `${file}.before-restore-20260201T000000.000Z`
    linkSync(file, earlier)
    writeFileSync(`${file}.latchkey.part`, 'half a copy')
    const { keptAs } = await restore(file, backup, AT)
    expect([file, `${keptAs}`, earlier].map(rowsIn)).toEqual([3, 7, 7])
    expect(statSync(file).nlink).toBe(1)
    expect(partsBeside(file)).toEqual([])
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

describe('a file that cannot be restored', () => {
  const inSqlite = (change: string) => (path: string) => void new Sqlite(path).exec(change).close()
  const newerStore = async (path: string) => {
    const db = open(path)
    await migrate(db, [...MIGRATIONS, { name: '9001-newer', create: () => ({ up: async () => {} }) }])
    await db.destroy()
  }
  const written = (text: string) => (path: string) => writeFileSync(path, text)
  const takeAnother = / is damaged: [^\n]+\. Choose another backup\.$/
  const swallow = 'create trigger swallow after insert on events begin delete from events; end'

  it.each<[what: string, code: string, said: RegExp, of: number, make: (path: string) => unknown]>([
    ['damaged', 'backup_damaged', takeAnother, 500, damage],
    ['cut in half', 'backup_damaged', takeAnother, 500, cutInHalf],
    ['no database', 'backup_damaged', takeAnother, 0, written('no database '.repeat(1_000))],
    ['empty', 'not_a_backup', /is empty/, 0, written('')],
    ['a folder', 'not_a_backup', /is a folder/, 0, (path) => mkdirSync(path)],
    [
      'a database of something else',
      'not_a_backup',
      /not a Latchkey database/,
      0,
      inSqlite('create table songs (title)'),
    ],
    ['given a trigger', 'not_a_backup', /./, 3, inSqlite(swallow)],
    ['given a view', 'not_a_backup', /./, 3, inSqlite('create view everything as select * from events')],
    ['written by a newer version', 'schema_too_new', /newer/, 0, newerStore],
  ])('since it is %s says so, and leaves every byte of the store', async (_what, code, said, rows, make) => {
    const backup = rows > 0 ? await backupOf(rows) : join(dirname(await backupOf(1)), 'other.db')
    await make(backup)
    const file = await killedStore(7)
    const before = contentsOf(dirname(file))
    const message = expect.stringMatching(said)
    await expect(restore(file, backup, AT)).rejects.toMatchObject({ code, message })
    expect(contentsOf(dirname(file))).toEqual(before)
    expect(rowsIn(file)).toBe(7)
  })

  it.each([
    ...[1, 2, 100, 255, 256, 499, 500, 2_048, 4_095, 4_096, 5_000].map(
      (bytes) => [`cut off by ${bytes}`, -bytes] as const,
    ),
    ...[1, 500, 4_096, 10_000].map((bytes) => [`longer by ${bytes}`, bytes] as const),
  ])('since it is %s bytes is refused before it is read', async (_, bytes) => {
    const backup = await backupOf(50)
    const { size } = statSync(backup)
    if (bytes < 0) truncateSync(backup, size + bytes)
    else appendFileSync(backup, Buffer.alloc(bytes, 0xa5))
    const file = await killedStore(7)
    const message = expect.stringMatching(
      new RegExp(`it has ${size + bytes} bytes, but its header says ${size}\\. Choose another`),
    )
    await expect(restore(file, backup, AT)).rejects.toMatchObject({ code: 'backup_damaged', message })
    expect(rowsIn(file)).toBe(7)
  })

  it('since a body in it is not what was received is refused, unless that is accepted', async () => {
    const altered = BODIES[3]?.replace('cus_1', 'cus_2') ?? ''
    const alter = (folder: string) => onStore(folder, (db) => alterBody(db, JSON.parse(altered).id, altered))
    const backup = await backupWith(BODIES, alter)
    const file = await killedStore(7)
    const before = contentsOf(dirname(file))
    const message = expect.stringMatching(/ 1 of its \d+ event bodies .* evt_1_created in live\. .*--force/)
    await expect(restore(file, backup, AT)).rejects.toMatchObject({ code: 'backup_damaged', message })
    expect(contentsOf(dirname(file))).toEqual(before)
    expect(await restore(file, backup, { ...AT, acceptAltered: true })).toMatchObject({ altered: 1 })
  })

  it('since a page of it was zeroed is refused, whichever page', async () => {
    const padding = 'x'.repeat(9_000)
    const backup = await backupWith(BODIES.map((body) => `${body.slice(0, -1)},"padding":"${padding}"}`))
    const whole = readFileSync(backup)
    const file = temporaryFile()
    const taken: number[] = []
    for (let page = 1; page <= whole.length / PAGE_BYTES; page += 1) {
      writeFileSync(backup, whole)
      overwritePages(backup, page)
      if (!readFileSync(backup).equals(whole))
        await restore(file, backup, AT).then(
          () => taken.push(page),
          () => {},
        )
    }
    expect(taken).toEqual([])
  })

  it('since it is not there leaves no trace, and since the store is in use leaves that alone', async () => {
    const missing = temporaryFile()
    await expect(restore(missing, `${missing}.gone`, AT)).rejects.toMatchObject({ code: 'backup_missing' })
    expect(existsSync(dirname(missing))).toBe(false)

    const file = await killedStore(7)
    const lock = lockStore(file)
    onTestFinished(() => lock.release())
    const before = contentsOf(dirname(file))
    await expect(restore(file, await backupOf(3), AT)).rejects.toMatchObject({ code: 'store_in_use' })
    expect(contentsOf(dirname(file))).toEqual(before)
  })
})
