import { describe, expect, it } from 'vitest'
import { fromEnv } from '../config/config-file.js'
import { eventually } from '../setup/eventually.js'
import { freePort } from '../setup/program.js'
import { customerStory, deliver } from './load.js'
import {
  API_KEY,
  ask,
  CONFIG,
  configuredFolder,
  entitlementsOf,
  keyEntry,
  rewriteConfig,
  SECRET,
  type ServedDaemon,
  serve,
} from './served.js'

const NEW_SECRET = 'whsec_rotated_0123456789'
const NEW_KEY = 'lk_second_key'
const TAKEN_OVER = 'read the config again'
const NEEDS_RESTART = 'these changes in the config need a restart'
const NOT_USABLE = 'config reload failed; keeping the running config'

/** Has the daemon read its config again, and resolves with what it logged once that begins with `message`. */
async function reload(daemon: ServedDaemon, message: string): Promise<unknown> {
  daemon.signal('SIGHUP')
  const [line] = await daemon.until(new RegExp(`^\\{.*"msg":"${message}.*$`, 'm'))
  return JSON.parse(line)
}

async function notesOf(daemon: ServedDaemon): Promise<unknown> {
  return ((await (await fetch(`${daemon.url}/readyz`)).json()) as { notes: unknown }).notes
}

function withSecrets(...secrets: unknown[]) {
  return { ...CONFIG, endpoints: { live: { environment: 'live', secrets } } }
}

describe('on SIGHUP a daemon', () => {
  it('takes over a rotated secret, and refuses no delivery meanwhile', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const events = Array.from({ length: 100 }, (_, n) => customerStory(n)).flatMap((story) => story.events)
    rewriteConfig(folder, withSecrets(NEW_SECRET, SECRET))
    const load = await deliver(daemon.url, events, {
      onAcknowledged: (count) => {
        if (count === 50) daemon.signal('SIGHUP')
      },
    })
    expect(load).toMatchObject({ refused: [], acknowledged: { length: events.length } })
    await daemon.until(new RegExp(TAKEN_OVER))

    const { events: late } = customerStory(events.length)
    expect((await deliver(daemon.url, late, { secret: NEW_SECRET })).refused).toEqual([])
  })

  it('no longer takes a secret that has been removed', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    rewriteConfig(folder, withSecrets(NEW_SECRET))
    await reload(daemon, TAKEN_OVER)
    const { events } = customerStory(0)
    expect((await deliver(daemon.url, events)).refused).toEqual([401, 401])
    expect((await deliver(daemon.url, events, { secret: NEW_SECRET })).refused).toEqual([])
  })

  it('serves an endpoint that has been added', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const { events, customerId, outcome } = customerStory(0)
    const added = { endpoint: 'added', secret: NEW_SECRET }
    expect((await deliver(daemon.url, events, added)).refused).toEqual([404, 404])

    const endpoints = { ...CONFIG.endpoints, added: { environment: 'live', secrets: [NEW_SECRET] } }
    rewriteConfig(folder, { ...CONFIG, endpoints })
    await reload(daemon, TAKEN_OVER)
    expect((await deliver(daemon.url, events, added)).dispositions).toEqual(['applied', 'applied'])
    expect(await entitlementsOf(daemon, customerId)).toEqual([outcome])
  })

  it('admits a key that has been added, and no longer one that has been removed', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    expect((await ask(daemon, '/entitlements/cus_1', NEW_KEY)).status).toBe(401)
    rewriteConfig(folder, { ...CONFIG, api: { keys: [keyEntry('second', NEW_KEY)] } })
    await reload(daemon, TAKEN_OVER)
    expect((await ask(daemon, '/entitlements/cus_1', NEW_KEY)).status).toBe(200)
    expect((await ask(daemon, '/entitlements/cus_1', API_KEY)).status).toBe(401)
  })

  it('keeps what runs where the config is invalid, and logs every problem and no secret', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    rewriteConfig(folder, {
      ...withSecrets(NEW_SECRET, '', fromEnv('NOT_SET')),
      api: { keys: [{ ...keyEntry('second', NEW_KEY), hash: NEW_KEY }] },
      polices: {},
    })
    expect(await reload(daemon, NOT_USABLE)).toMatchObject({
      level: 'error',
      issues: expect.arrayContaining([
        { path: 'endpoints.live.secrets[1]', message: expect.any(String) },
        { path: 'endpoints.live.secrets[2]', message: expect.stringContaining('NOT_SET') },
        { path: 'api.keys[0].hash', message: expect.any(String) },
        { path: 'polices', message: expect.any(String) },
      ]),
    })

    const { events } = customerStory(0)
    expect((await deliver(daemon.url, events, { secret: NEW_SECRET })).refused).toEqual([401, 401])
    expect((await deliver(daemon.url, events)).refused).toEqual([])
    expect((await ask(daemon, '/entitlements/cus_1', API_KEY)).status).toBe(200)
    expectUntold(daemon)
  })

  it('names every change that needs a restart, again until it is undone, and what it took over', async () => {
    const port = await freePort()
    const folder = configuredFolder({ ...CONFIG, server: { port } })
    const daemon = await serve(folder, { LATCHKEY_PORT: '' })
    const changed = {
      ...CONFIG,
      server: { port: port + 1, trustProxy: 1, metrics: { port: port + 2 } },
      database: { url: 'sqlite:other.db' },
      backup: { folder: 'backups' },
      retention: { bodiesAfter: '40d' },
      erasure: { onCustomerDeleted: true },
      identity: { ref: 'metadata.user' },
      api: { keys: [keyEntry('second', NEW_KEY)] },
      sync: { sweepEvery: '2h' },
    }
    rewriteConfig(folder, changed)
    expect(await reload(daemon, NEEDS_RESTART)).toMatchObject({
      level: 'warn',
      msg: `${NEEDS_RESTART}: server.port, server.trustProxy, server.metrics.host, server.metrics.port, backup.folder, backup.every, backup.keep, retention.bodiesAfter, erasure.onCustomerDeleted, identity.ref, database.url`,
    })
    await daemon.until(/"msg":"read the config again: took over api\.keys, sync"/)
    expect((await ask(daemon, '/entitlements/cus_1', NEW_KEY)).status).toBe(200)

    rewriteConfig(folder, { ...CONFIG, server: { port: port + 1 }, products: { pro_1: {} } })
    daemon.signal('SIGHUP')
    await daemon.until(/"msg":"read the config again: took over api\.keys, products, sync"/)
    expect(warningsOf(daemon).at(-1)).toBe(`${NEEDS_RESTART}: server.port`)
    expect(await notesOf(daemon)).toEqual(['Changes in the config need a restart: server.port.'])

    rewriteConfig(folder, { ...CONFIG, server: { port } })
    daemon.signal('SIGHUP')
    await daemon.until(/"msg":"read the config again: took over products"/)
    daemon.signal('SIGHUP')
    await daemon.until(/"msg":"read the config again: nothing has changed that a running daemon takes over"/)
    expect(warningsOf(daemon)).toHaveLength(2)
    expect(await notesOf(daemon)).toEqual([])
  })

  it('does not name what the environment overrides, which a restart would not change', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    rewriteConfig(folder, { ...CONFIG, server: { port: 4999 } })
    await reload(daemon, 'read the config again: nothing has changed')
    expect(warningsOf(daemon)).toEqual([])
  })

  it('takes over the log level, and says so under the more talkative of the two', async () => {
    const folder = configuredFolder({ ...CONFIG, log: { level: 'info' } })
    const daemon = await serve(folder)
    rewriteConfig(folder, { ...CONFIG, log: { level: 'silent' } })
    await reload(daemon, 'read the config again: took over log\\.level"')
    const { length } = daemon.logged()

    rewriteConfig(folder, { ...CONFIG, endpoints: {}, log: { level: 'silent' } })
    daemon.signal('SIGHUP')
    const gone = async () => (await deliver(daemon.url, customerStory(0).events)).refused
    await eventually(async () => expect(await gone()).toEqual([404, 404]))
    expect(daemon.logged()).toHaveLength(length)

    rewriteConfig(folder, { ...CONFIG, log: { level: 'debug' } })
    await reload(daemon, 'read the config again: took over endpoints, log\\.level"')
  })

  it('keeps what runs where the config is nested beyond reason, and says where in one line', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    for (const text of ['['.repeat(1_000_000), '{"a":'.repeat(100_000)]) {
      const before = daemon.stdout().split('\n').length
      rewriteConfig(folder, text)
      daemon.signal('SIGHUP')
      await eventually(async () => expect(daemon.stdout().split('\n')).toHaveLength(before + 1))
      expect(daemon.logged().at(-1)).toMatchObject({
        level: 'error',
        msg: expect.stringContaining(NOT_USABLE),
        why: expect.stringMatching(/ is nested more than 64 levels deep at line 1, column \d+$/),
      })
      expect(daemon.logged().at(-1)).not.toHaveProperty('err')
    }
    expect((await ask(daemon, '/entitlements/cus_1', API_KEY)).status).toBe(200)
  })

  it('keeps what runs where the config is no JSON, and takes it over once it is mended', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const { events } = customerStory(0)
    rewriteConfig(folder, JSON.stringify(withSecrets(NEW_SECRET)).replace('["whsec', '[whsec'))
    await reload(daemon, NOT_USABLE)
    expect(await notesOf(daemon)).toEqual([expect.stringContaining('could not be read again')])
    expect((await deliver(daemon.url, events)).refused).toEqual([])

    rewriteConfig(folder, withSecrets(NEW_SECRET))
    await reload(daemon, TAKEN_OVER)
    expect((await deliver(daemon.url, events)).refused).toEqual([401, 401])
    expectUntold(daemon)
  })
})

function warningsOf(daemon: ServedDaemon): unknown[] {
  return daemon
    .logged()
    .filter(({ level }) => level === 'warn')
    .map(({ msg }) => msg)
}

/** Nothing that opens anything may be in what the daemon wrote. */
function expectUntold(daemon: ServedDaemon): void {
  const written = daemon.stdout() + daemon.stderr()
  for (const secret of [SECRET, NEW_SECRET, API_KEY, NEW_KEY]) expect(written).not.toContain(secret)
}
