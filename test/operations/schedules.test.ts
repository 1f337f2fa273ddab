import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createLogger } from '../../src/log.js'
import { backupFileAt, newestBackupAt, pruneBackups } from '../../src/operations/backup-folder.js'
import { startSweeps } from '../../src/operations/schedule.js'
import { startBackup, startScheduledBackups } from '../../src/operations/scheduled-backups.js'
import { saveSyncSettings } from '../../src/store/sync-state.js'
import { eventually } from '../setup/eventually.js'
import { filledStore, rowsIn } from '../store/filled-store.js'
import { temporaryStore } from '../store/temporary-store.js'
import { CONFIG, configuredFolder, serveHere, temporaryFolder } from '../world.js'
import { turnBy } from './turn-by.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const NAME_OF_NOON = 'latchkey-20260301T120000.000Z.db'

/** A log, and all that was written to it. */
function logged() {
  const lines: { err?: unknown }[] = []
  return { log: createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) }), lines }
}

function folderWith(...names: readonly string[]): string {
  const folder = temporaryFolder()
  for (const name of names) writeFileSync(join(folder, name), '')
  return folder
}

describe('a folder of backups', () => {
  it('names a file by the time when it was begun, and knows the newest by its name, whatever else is there', () => {
    expect(backupFileAt('/backups', NOON + 1)).toBe('/backups/latchkey-20260301T120000.001Z.db')
    const folder = folderWith(
      'latchkey-20260228T235959.999Z.db',
      NAME_OF_NOON,
      'latchkey-20260301T130000.000Z.db.latchkey.part',
      'latchkey-20261301T130000.000Z.db',
      'latchkey-.db',
      'notes.txt',
    )
    expect(newestBackupAt(folder, NOON)).toBe(NOON)
    const missing = join(folder, 'missing')
    expect([newestBackupAt(missing, NOON), pruneBackups(missing, 7, NOON)]).toEqual([null, 0])
  })

  it('takes those from the future for the oldest, since the clock was set back', () => {
    const folder = folderWith()
    for (const at of [NOON, NOON + HOUR_MS, NOON - HOUR_MS]) writeFileSync(backupFileAt(folder, at), '')
    expect(newestBackupAt(folder, NOON)).toBe(NOON)
    expect(pruneBackups(folder, 1, NOON)).toBe(2)
    expect(readdirSync(folder)).toEqual([NAME_OF_NOON])
  })

  it('keeps the newest few, and everything that is not its own', () => {
    const others = ['latchkey-monday.db', 'latchkey.db', 'other-20260101T000000.000Z.db']
    const folder = folderWith(...others)
    for (const hours of [3, 0, 2, 1]) writeFileSync(backupFileAt(folder, NOON + hours * HOUR_MS), '')
    const begun = `${backupFileAt(folder, NOON)}.latchkey.part`
    for (const name of [begun, `${begun}-journal`]) writeFileSync(name, '')
    expect(pruneBackups(folder, 2, NOON + 9 * HOUR_MS)).toBe(2)
    const kept = ['latchkey-20260301T140000.000Z.db', 'latchkey-20260301T150000.000Z.db']
    expect(readdirSync(folder).sort()).toEqual([...kept, ...others])
  })
})

describe('scheduled backups', () => {
  interface Setting {
    readonly now: number
    readonly file?: string
    readonly folder?: string
    readonly keep?: number
  }

  /** Every hour, of a database that is there, unless another file is named; each in a thread of its own. */
  async function scheduled({ now, keep = 7, ...setting }: Setting) {
    const file = setting.file ?? join(temporaryFolder(), 'data', 'latchkey.db')
    if (setting.file === undefined) await filledStore(file, 3)
    const folder = setting.folder ?? join(dirname(file), 'backups')
    const { log, lines } = logged()
    const registry = new Registry()
    const { stop } = startScheduledBackups({
      everyMs: HOUR_MS,
      folder,
      keep,
      startBackup: (target) => startBackup(file, target),
      registry,
      clock: () => now,
      log,
    })
    onTestFinished(() => stop())
    return {
      file,
      folder,
      stop,
      lines,
      names: () => (existsSync(folder) ? readdirSync(folder) : []),
      metrics: () => registry.metrics(),
      /** Resolves once one has been made, or has failed. */
      async tried() {
        await eventually(() => expect(lines).not.toEqual([]))
        await stop()
      },
    }
  }
  const lastAt = (at: number) => `latchkey_last_backup_timestamp_seconds ${at / 1000}\n`

  it('make the first at once, none before the newest is old enough, and then keep as many as they may', async () => {
    const first = await scheduled({ now: NOON })
    expect(await first.metrics()).not.toContain('latchkey_last_backup')
    await first.tried()
    expect(first.lines).toMatchObject([{ msg: 'created a backup', file: join(first.folder, NAME_OF_NOON) }])
    expect(rowsIn(join(first.folder, NAME_OF_NOON))).toBe(3)
    expect(await first.metrics()).toContain(lastAt(NOON))

    const early = await scheduled({ ...first, now: NOON + HOUR_MS - 1 })
    await early.stop()
    expect([early.names(), early.lines]).toEqual([[NAME_OF_NOON], []])
    expect(await early.metrics()).toContain(lastAt(NOON))

    const next = await scheduled({ ...first, now: NOON + HOUR_MS, keep: 1 })
    await next.tried()
    expect(next.lines).toMatchObject([{ msg: 'created a backup', removed: 1 }])
    expect(next.names()).toEqual(['latchkey-20260301T130000.000Z.db'])

    const failed = await scheduled({ ...next, now: NOON + 2 * HOUR_MS, file: `${first.file}.gone`, keep: 1 })
    await failed.tried()
    const err = { message: expect.stringContaining(`${first.file}.gone`) }
    expect(failed.lines).toMatchObject([{ level: 'error', msg: expect.stringContaining('failed'), err }])
    expect(failed.names()).toEqual(next.names())
    expect(await failed.metrics()).toContain(lastAt(NOON + HOUR_MS))
    expect(await failed.metrics()).toContain('latchkey_backup_failures_total 1\n')
  })

  /** Backups by a schedule, each of which ends so at once, while the clock is turned: when they began, in minutes. */
  function atTimes(folder: string, done: (target: string) => Promise<{ file: string; bytes: number }>) {
    vi.useFakeTimers({
      now: NOON,
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'],
    })
    onTestFinished(() => void vi.useRealTimers())
    const { log, lines } = logged()
    const registry = new Registry()
    const begun: number[] = []
    const { stop } = startScheduledBackups({
      ...{ schedule: '0 14 * * *', timezone: 'UTC', folder, keep: 2, registry, clock: Date.now, log },
      startBackup(target) {
        begun.push((Date.now() - NOON) / MINUTE_MS)
        return { done: done(target), stop: () => {} }
      },
    })
    onTestFinished(() => stop())
    return { begun, lines, stop, turn: turnBy, metrics: () => registry.metrics() }
  }
  const made = async (file: string) => {
    writeFileSync(file, '')
    return { file, bytes: 0 }
  }

  it('are made at the times of a schedule, the first at the first of these, and as many are kept as may be', async () => {
    const folder = folderWith()
    const { begun, lines, turn, metrics } = atTimes(folder, made)
    await turn(2 * HOUR_MS - 1)
    expect(begun).toEqual([])
    await turn(1 + 2 * 24 * HOUR_MS)
    expect(begun).toEqual([0, 1, 2].map((days) => 120 + days * 24 * 60))
    expect(readdirSync(folder)).toEqual([
      'latchkey-20260302T140000.000Z.db',
      'latchkey-20260303T140000.000Z.db',
    ])
    expect(lines.at(-1)).toMatchObject({ msg: 'created a backup', removed: 1 })
    expect(await metrics()).toContain(lastAt(NOON + 50 * HOUR_MS))
  })

  it('by a schedule make up at the start for one that a stopped daemon missed, and for no other', async () => {
    const missed = atTimes(folderWith('latchkey-20260227T140000.000Z.db'), made)
    await missed.turn(HOUR_MS)
    expect(missed.begun).toEqual([0])
    await missed.stop()
    const inTime = atTimes(folderWith('latchkey-20260228T140000.000Z.db'), made)
    await inTime.turn(HOUR_MS)
    expect(inTime.begun).toEqual([])
    expect(await inTime.metrics()).toContain(lastAt(NOON - 22 * HOUR_MS))
  })

  it('by a schedule try a failed one again after ten minutes', async () => {
    const { begun, lines, turn, metrics } = atTimes(folderWith(), () => Promise.reject(new Error('full')))
    await turn(2 * HOUR_MS + 25 * MINUTE_MS)
    expect(begun).toEqual([120, 130, 140])
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatchObject({ msg: 'the backup failed; retrying in ten minutes' })
    expect(await metrics()).toContain('latchkey_backup_failures_total 3\n')
  })

  it('by a schedule are real ones', async () => {
    const file = join(temporaryFolder(), 'latchkey.db')
    await filledStore(file, 3)
    const folder = folderWith('latchkey-20260227T140000.000Z.db')
    const { log, lines } = logged()
    const { stop } = startScheduledBackups({
      ...{ schedule: '0 14 * * *', timezone: 'UTC', folder, keep: 1, registry: new Registry(), log },
      clock: () => NOON,
      startBackup: (target) => startBackup(file, target),
    })
    onTestFinished(() => stop())
    await eventually(() => expect(lines).not.toEqual([]))
    expect(lines).toMatchObject([{ msg: 'created a backup', file: join(folder, NAME_OF_NOON), removed: 1 }])
    expect(rowsIn(join(folder, NAME_OF_NOON))).toBe(3)
  })

  it('by a schedule are made by a daemon, which makes up for a missed one as it starts', async () => {
    const folder = configuredFolder({ ...CONFIG, backup: { folder: 'backups', schedule: '0 3 * * *' } })
    const backups = join(folder, 'backups')
    mkdirSync(backups)
    writeFileSync(join(backups, 'latchkey-20260101T030000.000Z.db'), '')
    const daemon = await serveHere(folder)
    await eventually(() =>
      expect(daemon.logged()).toContainEqual(expect.objectContaining({ msg: 'created a backup' })),
    )
    await daemon.stop()
    expect(readdirSync(backups)).toHaveLength(2)
  })

  it('make one where the newest is from the future, since the clock was set back, and no other before its time', async () => {
    const folder = folderWith('latchkey-20270101T000000.000Z.db')
    const first = await scheduled({ now: NOON, folder, keep: 1 })
    await first.tried()
    const second = await scheduled({ ...first, now: NOON + HOUR_MS - 1 })
    await second.stop()
    expect(second.names()).toEqual([NAME_OF_NOON])
  })

  it('give up the one under way when they stop, and leave nothing of it', async () => {
    const backups = await scheduled({ now: NOON })
    await backups.stop()
    expect([backups.names(), backups.lines]).toEqual([[], []])
  })

  /** Those whose every backup ends so at once, while the clock is turned. */
  function turning(folder: string, done: () => Promise<never> | Promise<{ file: string; bytes: number }>) {
    vi.useFakeTimers({ now: NOON, toFake: ['setTimeout', 'setInterval', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { log, lines } = logged()
    const begun: number[] = []
    const { stop } = startScheduledBackups({
      everyMs: HOUR_MS,
      folder,
      keep: 7,
      startBackup: () => {
        begun.push((Date.now() - NOON) / MINUTE_MS)
        return { done: done(), stop: () => {} }
      },
      registry: new Registry(),
      clock: Date.now,
      log,
    })
    return { begun, lines, stop }
  }

  it('say so where their folder cannot be read, and make one once it can', async () => {
    const folder = join(folderWith('backups'), 'backups')
    const { begun, lines, stop } = turning(folder, () => Promise.resolve({ file: '', bytes: 1 }))
    await vi.advanceTimersByTimeAsync(0)
    const err = { code: 'ENOTDIR', path: folder }
    expect(lines).toMatchObject([{ msg: expect.stringContaining('the backup failed'), err }])
    expect(lines[0]?.err).not.toHaveProperty('stack')
    rmSync(folder)
    await vi.advanceTimersByTimeAsync(11 * MINUTE_MS)
    await stop()
    expect(begun.length).toBeGreaterThan(0)
  })

  it('try a failed one again after ten minutes, and not at every minute', async () => {
    const { begun, stop } = turning(join(temporaryFolder(), 'backups'), () =>
      Promise.reject(new Error('full')),
    )
    await vi.advanceTimersByTimeAsync(25 * MINUTE_MS)
    await stop()
    expect(begun.map(Math.round)).toEqual([0, 10, 20])
  })
})

describe('sweeps every hour', () => {
  async function scheduled(sweptAt: number | null, sweep: () => Promise<void>) {
    const { log, lines } = logged()
    const db = await temporaryStore()
    await db.transaction().execute((trx) => saveSyncSettings(trx, { sweptAt }))
    const schedule = startSweeps({ db, clock: () => NOON, log }, sweep, () => HOUR_MS)
    onTestFinished(() => schedule.stop())
    return { stop: schedule.stop, lines }
  }

  it.each([
    ['there was none', null, 1],
    ['the newest is old enough', NOON - HOUR_MS, 1],
    ['the newest is not old enough', NOON - HOUR_MS + 1, 0],
    ['the newest is from the future', NOON + 1, 1],
  ])('at the start, where %s', async (_when, sweptAt, times) => {
    const sweep = vi.fn(() => Promise.resolve())
    const { stop } = await scheduled(sweptAt, sweep)
    await stop()
    expect(sweep).toHaveBeenCalledTimes(times)
  })

  it('go on where one fails, which is told in the log', async () => {
    const { stop, lines } = await scheduled(null, () =>
      Promise.reject(new Error('The store cannot be read.')),
    )
    await stop()
    expect(lines).toMatchObject([{ msg: expect.stringContaining('could not compare with the members') }])
  })
})
