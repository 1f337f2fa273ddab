import { describe, expect, it } from 'vitest'
import { fromEnv } from '../config/config-file.js'
import { eventually } from '../setup/eventually.js'
import { freePort } from '../setup/free-port.js'
import { customerStory, deliver, eventsOf, storiesOf } from '../stories.js'
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
} from '../world.js'

const NEW_SECRET = 'whsec_rotated_0123456789'
const NEW_KEY = 'lk_second_key'
const NEW_KEYS = { api: { keys: [keyEntry('second', NEW_KEY)] } }
const NEEDS_RESTART = 'these changes in the config need a restart'
const NOT_USABLE = 'config reload failed; keeping the running config'

/** Another config on SIGHUP; resolves with what is logged of it that begins with `message`. */
async function reload(daemon: ServedDaemon, folder: string, config: unknown, message: string) {
  const { length } = daemon.logged()
  rewriteConfig(folder, config)
  daemon.signal('SIGHUP')
  return eventually(() => {
    const found = daemon
      .logged()
      .slice(length)
      .find(({ msg }) => String(msg).startsWith(message))
    expect(found).toBeDefined()
    return found
  })
}

async function notesOf(daemon: ServedDaemon): Promise<unknown> {
  return ((await (await fetch(`${daemon.url}/readyz`)).json()) as { notes: unknown }).notes
}

function withSecrets(...secrets: unknown[]) {
  return { ...CONFIG, endpoints: { live: { environment: 'live', secrets } } }
}

const statusFor = async (daemon: ServedDaemon, key: string) =>
  (await ask(daemon, '/entitlements/cus_1', key)).status

function warningsOf(daemon: ServedDaemon): unknown[] {
  return daemon.logged().flatMap(({ level, msg }) => (level === 'warn' ? [msg] : []))
}

/** Nothing that opens anything may be in what the daemon wrote. */
function expectUntold(daemon: ServedDaemon): void {
  const written = daemon.stdout() + daemon.stderr()
  for (const secret of [SECRET, NEW_SECRET, API_KEY, NEW_KEY]) expect(written).not.toContain(secret)
}

describe('on SIGHUP a daemon', () => {
  it('takes over secrets, endpoints and keys, and refuses no delivery meanwhile', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    expect(await statusFor(daemon, NEW_KEY)).toBe(401)
    const events = eventsOf(storiesOf(0, 100))
    rewriteConfig(folder, { ...withSecrets(NEW_SECRET, SECRET), ...NEW_KEYS })
    const load = await deliver(daemon.url, events, {
      onAcknowledged: (count) => {
        if (count === 50) daemon.signal('SIGHUP')
      },
    })
    expect(load).toMatchObject({ refused: [], acknowledged: { length: events.length } })
    await daemon.until(/read the config again: now using endpoints, api\.keys"/)
    const { events: late, customerId, outcome } = customerStory(100)
    expect((await deliver(daemon.url, late, { secret: NEW_SECRET })).refused).toEqual([])
    expect(await entitlementsOf(daemon, customerId, NEW_KEY)).toEqual([outcome])
    expect(await statusFor(daemon, API_KEY)).toBe(401)

    const added = { endpoint: 'added', secret: NEW_SECRET }
    expect((await deliver(daemon.url, late, added)).refused).toEqual([404, 404])
    const endpoints = {
      ...withSecrets(NEW_SECRET).endpoints,
      added: { environment: 'live', secrets: [NEW_SECRET] },
    }
    await reload(daemon, folder, { ...CONFIG, endpoints }, 'read the config again')
    expect((await deliver(daemon.url, late, added)).dispositions).toEqual(['duplicate', 'duplicate'])
    // A secret that was removed no longer counts.
    expect((await deliver(daemon.url, late)).refused).toEqual([401, 401])
    expectUntold(daemon)
  })

  it('keeps what runs where the config is invalid, logs every problem and no secret, and goes on once it is mended', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const invalid = {
      ...withSecrets(NEW_SECRET, '', fromEnv('NOT_SET')),
      api: { keys: [{ ...keyEntry('second', NEW_KEY), hash: NEW_KEY }] },
      polices: {},
    }
    expect(await reload(daemon, folder, invalid, NOT_USABLE)).toMatchObject({
      level: 'error',
      issues: expect.arrayContaining([
        { path: 'endpoints.live.secrets[1]', message: expect.any(String) },
        { path: 'endpoints.live.secrets[2]', message: expect.stringContaining('NOT_SET') },
        { path: 'api.keys[0].hash', message: expect.any(String) },
        { path: 'polices', message: expect.any(String) },
      ]),
    })
    expect(await notesOf(daemon)).toEqual([expect.stringContaining('Could not read the config file again')])
    const broken = JSON.stringify(withSecrets(NEW_SECRET)).replace('["whsec', '[whsec')
    for (const [text, why] of [
      [broken, / is not valid JSON at line 1, column \d+: /],
      ['['.repeat(1_000_000), / is nested more than 64 levels deep at line 1, column \d+$/],
    ] as const) {
      const logged = await reload(daemon, folder, text, NOT_USABLE)
      expect(logged).toMatchObject({ level: 'error', why: expect.stringMatching(why) })
      expect(logged).not.toHaveProperty('err')
    }
    const { events } = customerStory(0)
    expect((await deliver(daemon.url, events, { secret: NEW_SECRET })).refused).toEqual([401, 401])
    expect((await deliver(daemon.url, events)).refused).toEqual([])
    expect(await statusFor(daemon, API_KEY)).toBe(200)

    await reload(daemon, folder, withSecrets(NEW_SECRET), 'read the config again: now using endpoints')
    expect((await deliver(daemon.url, events)).refused).toEqual([401, 401])
    expect(await notesOf(daemon)).toEqual([])
    expectUntold(daemon)
  })

  it('names every change that needs a restart and that no variable overrides, again until it is undone', async () => {
    const port = await freePort()
    const server = { port, host: '127.0.0.1' }
    const folder = configuredFolder({ ...CONFIG, server })
    const daemon = await serve(folder, { LATCHKEY_PORT: '', LATCHKEY_HOST: '127.0.0.1' })
    const changed = {
      ...CONFIG,
      ...NEW_KEYS,
      server: { port: port + 1, host: '::1', trustProxy: 1, metrics: { port: port + 2 } },
      database: { url: 'sqlite:other.db' },
      backup: { folder: 'backups' },
      retention: { bodiesAfter: '40d' },
      erasure: { onCustomerDeleted: true },
      identity: { ref: 'metadata.user' },
      sync: { sweepEvery: '2h' },
      provider: { live: { baseUrl: 'https://payments.example', apiKey: 'sk_live_0123456789' } },
      backfill: { timezone: 'Europe/Berlin' },
    }
    expect(await reload(daemon, folder, changed, NEEDS_RESTART)).toMatchObject({
      level: 'warn',
      msg: `${NEEDS_RESTART}: server.port, server.trustProxy, server.metrics.host, server.metrics.port, backup.folder, backup.every, backup.keep, retention.bodiesAfter, erasure.onCustomerDeleted, identity.ref, backfill.timezone, provider.live.baseUrl, provider.live.apiKey, provider.live.legacy, database.url`,
    })
    await daemon.until(/"msg":"read the config again: now using api\.keys, sync"/)
    expect(await statusFor(daemon, NEW_KEY)).toBe(200)

    const still = { ...CONFIG, server: { ...server, port: port + 1 }, products: { pro_1: {} } }
    await reload(daemon, folder, still, 'read the config again: now using api.keys, products, sync')
    expect(warningsOf(daemon).at(-1)).toBe(`${NEEDS_RESTART}: server.port`)
    expect(await notesOf(daemon)).toEqual(['Changes in the config need a restart: server.port.'])

    const undone = { ...CONFIG, server }
    await reload(daemon, folder, undone, 'read the config again: now using products')
    const nothing = 'read the config again: nothing has changed'
    await reload(daemon, folder, undone, nothing)
    expect(warningsOf(daemon)).toHaveLength(2)
    expect(await notesOf(daemon)).toEqual([])
  })

  it('takes over the log level, and says so under the more talkative of the two', async () => {
    const at = (level: string) => ({ ...CONFIG, log: { level } })
    const folder = configuredFolder(at('info'))
    const daemon = await serve(folder)
    await reload(daemon, folder, at('silent'), 'read the config again: now using log.level')
    const { length } = daemon.logged()

    rewriteConfig(folder, { ...at('silent'), endpoints: {} })
    daemon.signal('SIGHUP')
    const refused = async () => (await deliver(daemon.url, customerStory(0).events)).refused
    await eventually(async () => expect(await refused()).toEqual([404, 404]))
    expect(daemon.logged()).toHaveLength(length)

    await reload(daemon, folder, at('debug'), 'read the config again: now using endpoints, log.level')
  })
})
