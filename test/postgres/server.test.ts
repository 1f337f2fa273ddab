import { describe, expect, inject, it } from 'vitest'
import { ask, type RunningDaemon, runDaemon, send } from '../daemon/running-daemon.js'
import { CUSTOMER, wireEvent } from '../daemon/wire-events.js'
import { eventually } from '../setup/eventually.js'
import { answerOf, configuredFolder, databaseIn, postgresAt, run } from '../world.js'
import { openWay, urlBy } from './way.js'

describe('a database that is away', () => {
  it('has deliveries and questions refused in time, and is served again once it is back', async () => {
    const { url } = await postgresAt('away')
    const way = await openWay(() => Number(new URL(url).port))
    const daemon = await runDaemon({ config: { database: { url: urlBy(way, url) } } })
    expect((await send(daemon, wireEvent('payment.authorized'))).status).toBe(200)
    way.become('cut')
    const late = wireEvent('payment.refunded')
    const [delivery, question, ready] = await Promise.all([
      send(daemon, late),
      ask(daemon, `/entitlements/${CUSTOMER}`),
      ask(daemon, '/readyz'),
    ])
    expect([delivery.status, question.status, ready.status]).toEqual([503, 503, 503])
    expect(await question.json()).toMatchObject({ code: 'store_unavailable' })
    way.become('open')
    await eventually(async () => expect((await ask(daemon, '/readyz')).status).toBe(200))
    expect((await send(daemon, late)).status).toBe(200)
    expect(JSON.stringify(daemon.logged())).not.toContain(`${new URL(inject('postgresUrl')).password}@`)
    await expectStopped(daemon)
  })

  it('is named where a daemon cannot start, without its password', async () => {
    const url = 'postgres://somebody:very-secret@127.0.0.1:1/shop'
    const started = runDaemon({ config: { database: { url } } })
    await expect(started).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /^postgres:\/\/127\.0\.0\.1:1\/shop can't be opened: PostgreSQL cannot be reached/,
      ),
    })
  })
})

async function expectStopped(daemon: RunningDaemon): Promise<void> {
  await daemon.stop()
  await expect(ask(daemon, '/healthz')).rejects.toThrow()
}

describe('the commands', () => {
  it('refuse to copy a file, and say what to use instead', async () => {
    const folder = configuredFolder()
    for (const words of ['backup b.db', 'restore b.db', 'compact', 'migrate']) {
      const { code, stderr } = await run(folder, words)
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('pg_dump') })
    }
  })

  it('examine the database and its server', async () => {
    const folder = configuredFolder()
    const unreached = await run(folder, 'doctor', {
      env: { LATCHKEY_DATABASE_URL: 'postgres://127.0.0.1:1/shop' },
    })
    expect(unreached.stdout).toMatch(/^FAIL {2}schema .*PostgreSQL cannot be reached/m)
    await answerOf(folder, 'events list')
    const { stdout } = await run(folder, 'doctor')
    expect(stdout).toMatch(/^ok {4}schema +current$/m)
    // The server of the tests is a fast one.
    expect(stdout).toMatch(/^FAIL {2}database +fsync is off/m)
    expect(stdout).not.toMatch(/^\w+ +(integrity|log|disk) /m)
    expect((await postgresAt(databaseIn(folder))).url).toContain('/latchkey_')
  })
})
