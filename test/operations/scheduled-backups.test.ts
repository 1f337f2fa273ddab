import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Writable } from 'node:stream'
import { Registry } from 'prom-client'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createLogger } from '../../src/log.js'
import { startBackup, startScheduledBackups } from '../../src/operations/scheduled-backups.js'
import { eventually } from '../setup/eventually.js'
import { filledStore, rowsIn } from '../store/filled-store.js'
import { temporaryFile } from '../store/temporary-store.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const HOUR_MS = 3_600_000

interface Setting {
  readonly now: number
  readonly file?: string
  readonly folder?: string
  readonly keep?: number
}

/** Backups every hour of a database that is there, unless another file is named; each in a thread of its own. */
async function scheduled(setting: Setting) {
  const file = setting.file ?? temporaryFile()
  if (setting.file === undefined) await filledStore(file, 3)
  const folder = setting.folder ?? join(dirname(file), 'backups')
  const lines: string[] = []
  const registry = new Registry()
  const schedule = startScheduledBackups({
    everyMs: HOUR_MS,
    folder,
    keep: setting.keep ?? 7,
    startBackup: (target) => startBackup(file, target),
    registry,
    clock: () => setting.now,
    log: createLogger('info', lineWriter(lines)),
  })
  onTestFinished(() => schedule.stop())
  return {
    file,
    folder,
    stop: schedule.stop,
    names: () => (existsSync(folder) ? readdirSync(folder) : []),
    logged: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    metrics: () => registry.metrics(),
  }
}

function lineWriter(lines: string[]): Writable {
  return new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
}

const NAME_OF_NOON = 'latchkey-20260301T120000.000Z.db'

it('makes the first backup at once, says so, and tells its time in metrics', async () => {
  const backups = await scheduled({ now: NOON })
  expect(await backups.metrics()).not.toContain('latchkey_last_backup')
  await eventually(() => expect(backups.logged()).not.toEqual([]))
  expect(backups.logged()).toMatchObject([{ msg: 'made a backup', file: join(backups.folder, NAME_OF_NOON) }])
  expect(backups.names()).toEqual([NAME_OF_NOON])
  expect(rowsIn(join(backups.folder, NAME_OF_NOON))).toBe(3)
  expect(await backups.metrics()).toContain(`latchkey_last_backup_timestamp_seconds ${NOON / 1000}\n`)
})

it('makes none after a restart before the newest is old enough, and tells of that one', async () => {
  const first = await scheduled({ now: NOON })
  await eventually(() => expect(first.logged()).not.toEqual([]))
  await first.stop()
  const second = await scheduled({ ...first, now: NOON + HOUR_MS - 1 })
  await second.stop()
  expect(second.names()).toEqual([NAME_OF_NOON])
  expect(await second.metrics()).toContain(`latchkey_last_backup_timestamp_seconds ${NOON / 1000}\n`)
})

it('makes the next once the newest is old enough, and keeps as many as it may', async () => {
  const first = await scheduled({ now: NOON })
  await eventually(() => expect(first.logged()).not.toEqual([]))
  await first.stop()
  const second = await scheduled({ ...first, now: NOON + HOUR_MS, keep: 1 })
  await eventually(() => expect(second.logged()).not.toEqual([]))
  expect(second.logged()).toMatchObject([{ msg: 'made a backup', removed: 1 }])
  expect(second.names()).toEqual(['latchkey-20260301T130000.000Z.db'])
})

it('makes one where the newest is from the future, since the clock was set back, and no other before its time', async () => {
  const folder = dirname(temporaryFile())
  mkdirSync(folder)
  writeFileSync(join(folder, 'latchkey-20270101T000000.000Z.db'), '')
  const first = await scheduled({ now: NOON, folder, keep: 1 })
  await eventually(() => expect(first.logged()).not.toEqual([]))
  await first.stop()
  expect(first.names()).toEqual([NAME_OF_NOON])
  const second = await scheduled({ ...first, now: NOON + HOUR_MS - 1 })
  await second.stop()
  expect(second.names()).toEqual([NAME_OF_NOON])
})

it('says why one failed, and leaves the older ones alone', async () => {
  const first = await scheduled({ now: NOON })
  await eventually(() => expect(first.logged()).not.toEqual([]))
  await first.stop()
  const missing = `${first.file}.gone`
  const second = await scheduled({ now: NOON + HOUR_MS, file: missing, folder: first.folder, keep: 1 })
  await eventually(() => expect(second.logged()).not.toEqual([]))
  expect(second.logged()).toMatchObject([
    {
      level: 'error',
      msg: expect.stringContaining('failed'),
      err: { message: expect.stringContaining(missing) },
    },
  ])
  expect(second.names()).toEqual([NAME_OF_NOON])
  expect(await second.metrics()).toContain(`latchkey_last_backup_timestamp_seconds ${NOON / 1000}\n`)
})

it('says so where its folder can not be read, and makes one once it can', async () => {
  vi.useFakeTimers({ now: NOON, toFake: ['setTimeout', 'setInterval', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const folder = temporaryFile()
  mkdirSync(dirname(folder), { recursive: true })
  writeFileSync(folder, '')
  const begun: string[] = []
  const lines: string[] = []
  const schedule = startScheduledBackups({
    everyMs: HOUR_MS,
    folder,
    keep: 7,
    startBackup: (file) => {
      begun.push(file)
      return { done: Promise.resolve({ file, bytes: 1 }), stop: () => {} }
    },
    registry: new Registry(),
    clock: Date.now,
    log: createLogger('error', lineWriter(lines)),
  })
  await vi.advanceTimersByTimeAsync(0)
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { msg: expect.stringContaining('the backup failed'), err: { code: 'ENOTDIR', path: folder } },
  ])
  expect(lines.join('')).not.toContain('"stack"')
  rmSync(folder)
  await vi.advanceTimersByTimeAsync(11 * 60_000)
  await schedule.stop()
  expect(begun.length).toBeGreaterThan(0)
})

it('gives up the one under way when it stops, and leaves nothing of it', async () => {
  const backups = await scheduled({ now: NOON })
  await backups.stop()
  expect(backups.names()).toEqual([])
  expect(backups.logged()).toEqual([])
})

it('tries a failed one again after ten minutes, and not at every minute', async () => {
  vi.useFakeTimers({ now: NOON })
  onTestFinished(() => void vi.useRealTimers())
  const begun: number[] = []
  const schedule = startScheduledBackups({
    everyMs: HOUR_MS,
    folder: temporaryFile(),
    keep: 7,
    startBackup: () => {
      begun.push(Date.now())
      return { done: Promise.reject(new Error('The disk is full.')), stop: () => {} }
    },
    registry: new Registry(),
    clock: Date.now,
    log: createLogger('silent'),
  })
  await vi.advanceTimersByTimeAsync(25 * 60_000)
  await schedule.stop()
  const minutes = begun.map((at) => Math.round((at - NOON) / 60_000))
  expect(minutes).toEqual([0, 10, 20])
})
