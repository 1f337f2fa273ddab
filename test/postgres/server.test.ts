import { describe, expect, inject, it } from 'vitest'
import { ask, type RunningDaemon, runDaemon, send } from '../daemon/running-daemon.js'
import { CUSTOMER, wireEvent } from '../daemon/wire-events.js'
import { eventually } from '../setup/eventually.js'
import { answerOf, configuredFolder, databaseIn, MAY_ALL, postgresAt, rewriteConfig, run } from '../world.js'
import { openWay, urlBy } from './way.js'

const AWAY = 'PostgreSQL is unreachable: deliveries and questions get 503'
const BACK = 'PostgreSQL is reachable again'

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
    const env = { LATCHKEY_DATABASE_URL: urlBy(way, url) }
    rewriteConfig(daemon.folder, MAY_ALL)
    expect(await answerOf(daemon.folder, 'status', { env })).toMatchObject({
      ready: false,
      notes: ['The store cannot be written now.'],
      database: { bytes: null },
    })
    const { stdout } = await run(daemon.folder, 'doctor', { env })
    expect(stdout.match(/^(ok|FAIL) +(daemon|schema|database) .*$/gm)).toEqual([
      expect.stringMatching(/^ok +daemon +running since/),
      expect.stringMatching(
        /^FAIL +schema +the database can’t be read: PostgreSQL cannot be reached: .+: check that/,
      ),
    ])
    const said = (msg: string) => daemon.logged().filter((line) => line.msg === msg)
    await eventually(() => expect(said(AWAY)).toHaveLength(1))
    way.become('open')
    await eventually(async () => expect((await ask(daemon, '/readyz')).status).toBe(200))
    await eventually(() => expect(said(BACK)).toMatchObject([{ outForSeconds: expect.any(Number) }]))
    expect(said(AWAY)).toHaveLength(1)
    expect(JSON.stringify(daemon.logged())).not.toContain('.: ')
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
        /^postgres:\/\/127\.0\.0\.1:1\/shop can't be used: PostgreSQL cannot be reached/,
      ),
    })
  })
})

async function expectStopped(daemon: RunningDaemon): Promise<void> {
  await daemon.stop()
  await expect(ask(daemon, '/healthz')).rejects.toThrow()
}

describe('the commands', () => {
  it('that work on a file refuse, and say what to use instead', async () => {
    const folder = configuredFolder()
    const refused = { 'backup b.db': 'pg_dump', 'restore b.db': 'pg_restore', compact: 'autovacuum' }
    for (const [words, instead] of Object.entries(refused)) {
      const { code, stderr } = await run(folder, words)
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(instead) })
    }
  })

  it('examine the database and its server', async () => {
    const folder = configuredFolder()
    const unreached = await run(folder, 'doctor', {
      env: { LATCHKEY_DATABASE_URL: 'postgres://127.0.0.1:1/shop' },
    })
    expect(unreached.stdout).toMatch(/^FAIL {2}schema .*PostgreSQL cannot be reached/m)
    const { stdout } = await run(folder, 'doctor')
    expect(stdout).toMatch(/^ok {4}schema +current$/m)
    // The server of the tests is a fast one.
    expect(stdout).toMatch(/^FAIL {2}database +fsync is off/m)
    expect(stdout).not.toMatch(/^\w+ +(integrity|log|disk) /m)
    expect((await postgresAt(databaseIn(folder))).url).toContain('/latchkey_')
  })
})
