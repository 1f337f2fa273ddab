import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ask, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

const GRANT = wireEvent('payment.authorized')

describe('a database that is no longer where it was', () => {
  it.each<[string, (daemon: RunningDaemon) => void]>([
    ['removed', ({ databaseFile }) => rmSync(databaseFile)],
    ['removed with its folder', ({ databaseFile }) => rmSync(dirname(databaseFile), { recursive: true })],
    ['emptied', ({ databaseFile }) => truncateSync(databaseFile)],
    [
      'replaced by another file',
      ({ databaseFile }) => {
        writeFileSync(`${databaseFile}.other`, 'another file')
        renameSync(`${databaseFile}.other`, databaseFile)
      },
    ],
    ['without its lock file', ({ databaseFile }) => rmSync(`${databaseFile}.lock`)],
  ])('takes no delivery once %s, and ends', async (_name, harm) => {
    const daemon = await runDaemon()
    expect((await send(daemon, GRANT)).status).toBe(200)
    harm(daemon)
    const refused = await send(daemon, wireEvent('payment.refunded'))
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ code: 'not_stored' })
    expect(await daemon.failure).toMatchObject({ code: 'store_replaced' })
    expect((await ask(daemon, '/healthz')).status).toBe(503)
  })

  it('is one database under every link that leads to it', async () => {
    const first = await runDaemon()
    const folder = join(first.folder, 'elsewhere')
    mkdirSync(join(folder, 'data'), { recursive: true })
    symlinkSync(first.databaseFile, join(folder, 'data', 'latchkey.db'))
    await expect(runDaemon({ folder })).rejects.toMatchObject({ code: 'store_in_use' })
  })

  it('is not served under a second name', async () => {
    const first = await runDaemon()
    await first.stop()
    const folder = join(first.folder, 'elsewhere')
    mkdirSync(join(folder, 'data'), { recursive: true })
    linkSync(first.databaseFile, join(folder, 'data', 'latchkey.db'))
    await expect(runDaemon({ folder })).rejects.toMatchObject({ code: 'store_in_use' })
  })

  it('is named where it is damaged from the start', async () => {
    const first = await runDaemon()
    await first.stop()
    writeFileSync(first.databaseFile, 'this is no database, and long enough to be read as one '.repeat(200))
    await expect(runDaemon({ folder: first.folder })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(first.databaseFile),
    })
  })
})

describe('readiness', () => {
  it('is told by storing something, which a store that refuses does not', async () => {
    const daemon = await runDaemon()
    expect((await ask(daemon, '/readyz')).status).toBe(200)
    const before = await daemon.stored((db) => db.selectFrom('settings').selectAll().execute())
    expect(before.map(({ key }) => key)).toContain('probed_at')
  })
})
