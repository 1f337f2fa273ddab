import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import { migrate, pendingMigrations } from '../../src/store/migrate.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { expectNothingLost, storedIds } from '../faults/aftermath.js'
import { alterBody } from '../setup/alter-body.js'
import { deliver, eventsOf, idsOf, storiesOf } from '../stories.js'
import {
  answerOf,
  ask,
  configuredFolder,
  databaseIn,
  entitlementsOf,
  failureOf,
  onStore,
  rewriteConfig,
  run,
  serveHere,
  takeIn,
} from '../world.js'

describe('latchkey restore', () => {
  it('goes back to a backup, and keeps what was there beside it, each for its owner alone', async () => {
    const folder = configuredFolder()
    const daemon = await serveHere(folder)
    await deliver(daemon.url, eventsOf(storiesOf(0, 2)))
    await answerOf(folder, 'backup backup.db')
    await deliver(daemon.url, eventsOf(storiesOf(2, 2)))
    const before = readFileSync(join(folder, 'backup.db'))
    expect(await failureOf(folder, 'backup backup.db')).toMatchObject({
      code: 1,
      error: { code: 'backup_exists' },
    })
    expect(readFileSync(join(folder, 'backup.db')).equals(before)).toBe(true)
    expect(await failureOf(folder, 'restore backup.db')).toMatchObject({
      code: 1,
      error: { code: 'store_in_use' },
    })
    const { cursor } = await answerOf(folder, 'check cus_0')
    await daemon.stop()

    const { file, keptAs, syncPaused } = await answerOf(folder, 'restore backup.db')
    expect({ file, syncPaused }).toEqual({ file: databaseIn(folder), syncPaused: true })
    expect(await storedIds(folder)).toHaveLength(5)
    for (const name of readdirSync(join(folder, 'data'))) {
      expect([name, statSync(join(folder, 'data', name)).mode & 0o777]).toEqual([name, 0o600])
    }
    const next = await serveHere(folder)
    for (const { customerId, outcome } of storiesOf(0, 2)) {
      expect(await entitlementsOf(next, customerId)).toEqual([outcome])
    }
    expect(await entitlementsOf(next, 'cus_2')).toEqual([])
    // The numbers are given again, to other changes.
    const reset = await ask(next, `/changes?cursor=${cursor}`)
    expect([reset.status, await reset.json()]).toMatchObject([410, { code: 'cursor_reset' }])
    await next.stop()
    await answerOf(folder, `restore ${keptAs}`)
    await expectNothingLost(folder, idsOf(eventsOf(storiesOf(0, 4))))
  })

  it('says which lines of the list of erasures it could not read, since those people may be back', async () => {
    const folder = configuredFolder()
    const daemon = await serveHere(folder)
    await deliver(daemon.url, eventsOf(storiesOf(0, 2)))
    await daemon.stop()
    await answerOf(folder, 'backup backup.db')
    writeFileSync(`${databaseIn(folder)}.erasures`, '{"environment":"live","custom')
    expect((await run(folder, 'restore backup.db')).stdout).toMatch(
      /^lines of \S+\.erasures that can't be read: 1\. .*restore again$/m,
    )
    expect(await answerOf(folder, 'restore backup.db')).toMatchObject({ unreadableErasures: 1 })
  })

  it('refuses a backup with an altered body, and takes it with --force', async () => {
    const folder = configuredFolder()
    const daemon = await serveHere(folder)
    await deliver(daemon.url, eventsOf(storiesOf(0, 2)))
    await daemon.stop()
    await onStore(folder, (db) => alterBody(db, 'evt_0_paid', '{}'))
    await answerOf(folder, 'backup backup.db')
    expect(await failureOf(folder, 'restore backup.db')).toMatchObject({
      code: 1,
      error: { code: 'backup_damaged', message: expect.stringContaining('--force') },
    })
    expect((await run(folder, 'restore backup.db --force')).stdout).toContain(
      'also in the backup: 1; see `latchkey doctor --thorough`\n',
    )
  })
})

describe('latchkey migrate and compact', () => {
  it('run the steps that an older schema lacks, keep it as it was, and leave what another process serves', async () => {
    const folder = configuredFolder()
    const older = openDatabase(databaseIn(folder), { readOnly: false })
    await migrate(older, MIGRATIONS.slice(0, 3))
    await older.destroy()
    const steps = MIGRATIONS.slice(3).map(({ name }) => name)
    const backup = `${databaseIn(folder)}.before-${steps[0]}`
    expect(await answerOf(folder, 'migrate')).toEqual({ steps, backup })
    const kept = openDatabase(backup, { readOnly: true })
    expect(await pendingMigrations(kept)).toEqual(steps)
    await kept.destroy()
    expect(await run(folder, 'migrate')).toEqual({
      code: 0,
      stdout: 'the schema is up to date\n',
      stderr: '',
    })

    const daemon = await serveHere(folder)
    await deliver(daemon.url, eventsOf(storiesOf(0, 2)))
    for (const words of ['migrate', 'compact']) {
      expect(await failureOf(folder, words)).toMatchObject({ code: 1, error: { code: 'store_in_use' } })
    }
    await daemon.stop()
    expect(await answerOf(folder, 'compact')).toMatchObject({ after: expect.any(Number) })
    await expectNothingLost(folder, idsOf(eventsOf(storiesOf(0, 2))))
  })
})

describe('a database that the system lets nobody get at', () => {
  it.each([...['check cus_1', 'events list', 'rebuild --verify', 'compact', 'migrate', 'backup copy.db']])(
    'is not told as missing by %s',
    async (words) => {
      const folder = configuredFolder()
      mkdirSync(join(folder, 'data'))
      symlinkSync(basename(databaseIn(folder)), databaseIn(folder))
      const message = expect.stringMatching(/^the database .* can't be read.*, .+ \(ELOOP\)$/)
      expect(await failureOf(folder, words)).toMatchObject({
        code: 1,
        error: { code: 'store_unavailable', message },
      })
    },
  )

  it('since it is a link that leads nowhere is told in a line', async () => {
    const folder = configuredFolder()
    mkdirSync(join(folder, 'data'), { mode: 0o700 })
    symlinkSync(join(folder, 'gone', 'latchkey.db'), databaseIn(folder))
    const { code, error } = await failureOf(folder, 'events list')
    expect({ code, message: error.message }).toEqual({
      code: 1,
      message: expect.stringMatching(/^There is no database/),
    })
  })

  it.runIf(process.getuid?.() !== 0)(
    'since its folder is read-only is told as that, and what to do',
    async () => {
      const folder = configuredFolder()
      await takeIn(folder, [])
      const data = join(folder, 'data')
      onTestFinished(() => chmodSync(data, 0o700))
      chmodSync(databaseIn(folder), 0o400)
      const expected = (code: string) =>
        `the database ${databaseIn(folder)} can't be written, it or its folder is read-only (${code}): run this as the user that owns it, or make both writable`
      await expect(serveHere(folder)).rejects.toThrow(expected('SQLITE_READONLY'))
      chmodSync(databaseIn(folder), 0o600)
      chmodSync(data, 0o500)
      const message = expected('SQLITE_READONLY_DIRECTORY')
      await expect(serveHere(folder)).rejects.toThrow(message)
      for (const words of ['compact', 'migrate']) {
        const error = { code: 'store_unavailable', message }
        expect(await failureOf(folder, words)).toMatchObject({ code: 1, error })
      }
    },
  )

  it.runIf(process.getuid?.() !== 0)('since it is another user’s is told as that', async () => {
    const folder = configuredFolder()
    await takeIn(folder, [])
    chmodSync(databaseIn(folder), 0)
    const message = `the database ${databaseIn(folder)} can't be read, permission denied (EACCES): run this as the user that owns it`
    expect((await failureOf(folder, 'check cus_1')).error).toMatchObject({
      code: 'store_unavailable',
      message,
    })
  })
})

describe('a file that can’t be written is told by the name that was given,', () => {
  it.each([
    ['of a backup', 'backup config.json/monday.db', 'backup_failed', 'not a directory (ENOTDIR)'],
    [
      'of an export',
      'events export --output gone/e.jsonl',
      'output_failed',
      'no such file or directory (ENOENT)',
    ],
  ])('%s', async (_what, words, code, why) => {
    const folder = configuredFolder()
    await takeIn(folder, [])
    const message = `${join(folder, words.split(' ').at(-1) ?? '')} can't be written: ${why}`
    expect(await failureOf(folder, words)).toMatchObject({ code: 1, error: { code, message } })
  })

  it.runIf(process.getuid?.() !== 0)('of a config', async () => {
    const folder = configuredFolder()
    const path = rewriteConfig(folder, {})
    chmodSync(dirname(path), 0o500)
    onTestFinished(() => chmodSync(dirname(path), 0o700))
    const create = 'keys create --name app --scope read --environment live'
    const message = expect.stringContaining(`${path} can't be written: permission denied (EACCES); `)
    expect((await failureOf(folder, create)).error).toMatchObject({ code: 'output_failed', message })
  })
})

it('restore says what only the replaced database has, and its commands take that over, beside a daemon too', async () => {
  const folder = configuredFolder()
  const daemon = await serveHere(folder)
  await answerOf(folder, 'grant cus_1 pro_1 --reason won')
  await answerOf(folder, 'backup early.db')
  await answerOf(folder, 'grant cus_2 pro_1 --reason won')
  await answerOf(folder, 'revoke cus_1 pro_1 --reason lost')
  await answerOf(folder, 'grant cus_3 pro_1 --reason tried --environment sandbox')
  await daemon.stop()
  const { stdout } = await run(folder, ['restore', 'early.db'])
  expect(stdout).toContain('2 live events are only in the old database. To recover them:\n')
  expect(stdout).toContain('one sandbox event is only in the old database. To recover it:\n')
  expect(stdout).toMatch(/^sync is paused: .*`latchkey sync resume`$/m)
  await serveHere(folder)
  const commands = [...stdout.matchAll(/^ {2}(?:LATCHKEY_DATABASE_URL=(\S+) )?latchkey (.*)$/gm)]
  expect(commands).toHaveLength(4)
  for (const [, url, words = ''] of commands) {
    await answerOf(folder, words, url === undefined ? {} : { env: { LATCHKEY_DATABASE_URL: url } })
  }
  expect(await answerOf(folder, 'check cus_1 pro_1')).toMatchObject({ active: false })
  expect(await answerOf(folder, 'check cus_2 pro_1')).toMatchObject({ active: true })
  expect(await answerOf(folder, 'check cus_3 pro_1 --environment sandbox')).toMatchObject({ active: true })
})
