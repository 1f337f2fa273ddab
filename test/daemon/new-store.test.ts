import { appendFileSync, mkdirSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

/** A log as a killed daemon leaves it, and no daemon. */
async function killed(): Promise<RunningDaemon> {
  const daemon = await runDaemon()
  expect((await send(daemon, wireEvent('payment.authorized'))).status).toBe(200)
  const log = `${daemon.databaseFile}-wal`
  renameSync(log, `${log}.kept`)
  expect((await send(daemon, wireEvent('payment.refunded'))).status).toBe(503)
  await daemon.failure
  await daemon.stop()
  renameSync(`${log}.kept`, log)
  return daemon
}

describe('a start without the database', () => {
  it.each<[string, (file: string) => void]>([
    ['missing', (file) => rmSync(file)],
    ['empty', (file) => truncateSync(file)],
  ])('leaves alone a log that tells of one which is %s', async (_how, harm) => {
    const { folder, databaseFile } = await killed()
    harm(databaseFile)
    const log = `${databaseFile}-wal`
    const { size } = statSync(log)
    expect(size).toBeGreaterThan(0)
    await expect(runDaemon({ folder })).rejects.toMatchObject({
      code: 'store_missing',
      message: expect.stringContaining('latchkey restore'),
    })
    expect(statSync(log).size).toBe(size)
    rmSync(log)
    expect((await send(await runDaemon({ folder }), wireEvent('payment.authorized'))).status).toBe(200)
  })

  it('makes one, and says so', async () => {
    const said = expect.objectContaining({ level: 'info', msg: 'created a new database' })
    const daemon = await runDaemon({ isNew: true })
    expect(daemon.logged()).toContainEqual(said)
    // Nobody is erased yet: a restore need not ask who was.
    expect(statSync(`${daemon.databaseFile}.erasures`)).toMatchObject({ size: 0, mode: 0o100600 })
    expect((await daemon.restart()).logged()).not.toContainEqual(said)
  })

  it.each([
    ['a list of erasures', (file: string) => appendFileSync(`${file}.erasures`, '')],
    [
      'a backup',
      (file: string) => {
        const folder = join(dirname(file), 'backups')
        mkdirSync(folder)
        appendFileSync(join(folder, 'latchkey-20260301T120000.000Z.db'), '')
      },
    ],
  ])('warns where %s tells that there was one', async (_what, leave) => {
    const first = await runDaemon()
    await first.stop()
    for (const suffix of ['', '-wal', '-shm', '.erasures'])
      rmSync(`${first.databaseFile}${suffix}`, { force: true })
    leave(first.databaseFile)
    const backup = { every: '1d', folder: './data/backups' }
    const { logged } = await runDaemon({ folder: first.folder, config: { backup } })
    expect(logged()).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('where one existed before') }),
    )
  })
})
