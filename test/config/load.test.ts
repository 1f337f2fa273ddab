import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { locateConfig } from '../../src/config/locate.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { temporaryFolder } from '../world.js'
import { endpoint, fromEnv, load, problems, refusal, warnings, writeConfig } from './config-file.js'

describe('a config file', () => {
  it('takes its defaults for all that is left out', () => {
    const folder = temporaryFolder()
    const path = writeConfig({ endpoints: { v3: endpoint('live', 'whsec_a') } }, folder)
    expect(loadConfig({ path, env: {} }).config).toEqual({
      path,
      server: {
        host: '127.0.0.1',
        port: 4680,
        trustProxy: 0,
        accessLog: false,
        webhooks: null,
        metrics: null,
      },
      database: { url: 'sqlite:./data/latchkey.db', file: join(folder, 'data', 'latchkey.db') },
      backup: null,
      retention: null,
      erasure: { onCustomerDeleted: false },
      endpoints: [
        {
          name: 'v3',
          environment: 'live',
          secrets: [{ secret: 'whsec_a', notAfter: null }],
          toleranceSeconds: 300,
          aheadAtMostMs: 86_400_000,
        },
      ],
      apiKeys: [],
      policy: DOCUMENTED_POLICY,
      identity: { ref: 'externalRef' },
      products: [],
      sync: {
        discord: null,
        telegram: null,
        webhooks: [],
        sweepEveryMs: 3_600_000,
        removals: { atMost: 20, percent: 10 },
      },
      provider: { live: null, sandbox: null, hasUnused: false },
      backfill: { schedule: null, timezone: 'UTC' },
      console: true,
      log: { level: 'info' },
    })
  })

  it('that does not exist is missing, and a folder is refused with the reason', () => {
    const path = join(temporaryFolder(), 'config.json')
    const missing = { code: 'config_missing', message: `there is no config file ${path}` }
    expect(refusal(() => loadConfig({ path, env: {} }))).toMatchObject(missing)
    const folder = { code: 'config_invalid', message: expect.stringContaining('EISDIR') }
    expect(refusal(() => loadConfig({ path: temporaryFolder(), env: {} }))).toMatchObject(folder)
  })

  it('is refused with every problem at once, each with its path', () => {
    const config = {
      servr: {},
      server: { port: 70_000, webhooks: {} },
      endpoints: {
        'Bad Name': endpoint('live', 'whsec_a', ''),
        v3: { ...endpoint('live', '', { secret: 'whsec_b', notAfter: 'soon' }), tolerance: 5 },
        legacy: endpoint('live', fromEnv('UNSET')),
        sandbox: endpoint('sandbox', 'whsec_shared'),
        live: endpoint('live', 'whsec_shared'),
      },
      policy: { grantOn: { crypto: ['payment.paid'] }, lapseAfter: 'a while' },
    }
    expect(problems(config, { LATCHKEY_LOG_LEVEL: 'loud' }).sort()).toEqual([
      'LATCHKEY_LOG_LEVEL: must be one of fatal, error, warn, info, debug, trace, silent',
      "endpoints.legacy.secrets[0]: names the variable UNSET, which is not set in this process's environment",
      'endpoints.sandbox.secrets[0]: is also a secret of the live endpoint live: use separate secrets for sandbox and live',
      'endpoints.v3.secrets[0]: is empty',
      'endpoints.v3.secrets[1].notAfter: must be an ISO 8601 time, such as 2027-01-31T00:00:00Z',
      'endpoints.v3.tolerance: is not a known key',
      'endpoints["Ba… (8 characters)"].secrets[1]: is empty',
      'endpoints["Ba… (8 characters)"]: must be a name of 1 to 64 of a-z, 0-9 and "-"',
      expect.stringMatching(/^policy\.grantOn\.crypto\[0\]: must be a payment or checkout event type: /),
      'policy.lapseAfter: must be a duration, such as "45d"',
      'server.port: must be at most 65535',
      'server.webhooks.port: is required',
      'servr: is not a known key',
    ])
  })

  it('is an object, may name its schema, and warns while nothing can be received', () => {
    for (const config of [[], 3, null]) expect(problems(config)).toEqual([': must be an object'])
    const empty = 'endpoints: is empty: no delivery can be received'
    expect(warnings({ $schema: './config.schema.json' })).toEqual([empty])
  })

  it.each([
    ['--config before all', { option: 'a.json', env: { LATCHKEY_CONFIG: '/b.json' } }, '/srv/a.json', true],
    ['LATCHKEY_CONFIG before the folder', { env: { LATCHKEY_CONFIG: '/b.json' } }, '/b.json', true],
    ['config.json in the folder, which nobody named', { env: {} }, '/srv/config.json', false],
    ['an empty LATCHKEY_CONFIG as none', { env: { LATCHKEY_CONFIG: '' } }, '/srv/config.json', false],
  ])('is found by %s', (_, options, path, named) => {
    expect(locateConfig({ ...options, folder: '/srv' })).toEqual({ path, named })
  })
})

describe('the environment', () => {
  it('overrides host, port, database and log level, and nothing with an empty variable', () => {
    const folder = temporaryFolder()
    const path = writeConfig({ server: { host: '::1', port: 1 }, log: { level: 'warn' } }, folder)
    const env = {
      LATCHKEY_HOST: '0.0.0.0',
      LATCHKEY_PORT: '8080',
      LATCHKEY_DATABASE_URL: 'sqlite:other.db',
      LATCHKEY_LOG_LEVEL: 'debug',
    }
    expect(loadConfig({ path, env }).config).toMatchObject({
      server: { host: '0.0.0.0', port: 8080 },
      database: { url: 'sqlite:other.db', file: join(folder, 'other.db') },
      log: { level: 'debug' },
    })
    const empty = Object.fromEntries(Object.keys(env).map((name) => [name, '']))
    const { server, log } = loadConfig({ path, env: empty }).config
    expect([server.host, server.port, log.level]).toEqual(['::1', 1, 'warn'])
  })

  it('is refused for each override that is wrong', () => {
    for (const LATCHKEY_PORT of ['65536', '-1', '80x', '1e3', ' 80', '0x50']) {
      expect(problems({}, { LATCHKEY_PORT })).toEqual([expect.stringMatching(/^LATCHKEY_PORT: must be /)])
    }
    const env = { LATCHKEY_HOST: ' ', LATCHKEY_DATABASE_URL: 'mysql://x', LATCHKEY_LOG_LEVEL: 'INFO' }
    expect(problems({}, env)).toEqual([
      'LATCHKEY_HOST: is empty',
      'LATCHKEY_DATABASE_URL: must be sqlite:<path>, such as sqlite:./data/latchkey.db, or postgres://…',
      'LATCHKEY_LOG_LEVEL: must be one of fatal, error, warn, info, debug, trace, silent',
    ])
  })
})

it.each([
  ['sqlite:./data/a.db', '/data/a.db'],
  ['sqlite:a.db', '/a.db'],
  ['sqlite:../a.db', '/../a.db'],
])('the database %s is relative to the config file', (url, file) => {
  const folder = temporaryFolder()
  const { config } = loadConfig({ path: writeConfig({ database: { url } }, folder), env: {} })
  expect(config.database.file).toBe(join(folder, file))
})

it('a database on PostgreSQL has its pool and its timeout, and the folder of the local socket', () => {
  const folder = temporaryFolder()
  const url = 'postgresql://somebody@db:5433/shop?sslmode=verify-full'
  const path = writeConfig({ database: { url, connections: 20, statementTimeout: '5s' } }, folder)
  expect(loadConfig({ path, env: {} }).config.database).toEqual({
    url,
    file: join(folder, 'data', 'latchkey'),
    postgres: { url, connections: 20, writers: 4, statementTimeoutMs: 5_000 },
  })
})

it.each(['sqlite:/srv/a.db', 'sqlite:///srv/a.db'])('the database %s is absolute', (url) => {
  expect(load({ database: { url } }).config.database.file).toBe('/srv/a.db')
})
