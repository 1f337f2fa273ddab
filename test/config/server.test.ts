import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { load, problems, temporaryFolder, writeConfig } from './config-file.js'

describe('the server', () => {
  it.each([0, 65_535])('may listen on port %i', (port) => {
    expect(load({ server: { port } }).config.server.port).toBe(port)
  })

  it.each([-1, 65_536, 80.5, '80'])('is refused on port %j', (port) => {
    expect(problems({ server: { port } })).toEqual([expect.stringMatching(/^server\.port: must be /)])
  })

  it('may have listeners for webhooks and metrics alone', () => {
    const listeners = { webhooks: { host: '0.0.0.0', port: 4681 }, metrics: { port: 4682 } }
    expect(load({ server: listeners }).config.server).toMatchObject({
      webhooks: { host: '0.0.0.0', port: 4681 },
      metrics: { host: '127.0.0.1', port: 4682 },
    })
  })
})

describe('two listeners', () => {
  const server = (main: object, webhooks?: object, metrics?: object) => ({
    server: { ...main, ...(webhooks && { webhooks }), ...(metrics && { metrics }) },
  })

  it('may not have one host and port, and each that does is named', () => {
    expect(problems(server({ port: 4690 }, { port: 4690 }, { port: 4690 }))).toEqual([
      'server.webhooks.port: is the port of server too (127.0.0.1:4690): each listener needs its own',
      'server.metrics.port: is the port of server too (127.0.0.1:4690): each listener needs its own',
    ])
    expect(problems(server({}, { port: 4681 }, { port: 4681 }))).toEqual([
      'server.metrics.port: is the port of server.webhooks too (127.0.0.1:4681): each listener needs its own',
    ])
  })

  it('are found with the port that is left out, and beside other problems', () => {
    expect(problems({ ...server({ trustProxy: -1 }, undefined, { port: 4680 }), polices: {} })).toEqual([
      'server.trustProxy: must be at least 0',
      'polices: is not a known key',
      'server.metrics.port: is the port of server too (127.0.0.1:4680): each listener needs its own',
    ])
  })

  it('are found with the port or host that the environment sets', () => {
    const config = server({ host: '10.0.0.1', port: 1 }, { port: 4690 })
    expect(problems(config, { LATCHKEY_PORT: '4690', LATCHKEY_HOST: '0.0.0.0' })).toEqual([
      'server.webhooks.port: is the port of server too (0.0.0.0:4690): each listener needs its own',
    ])
    expect(load(server({ port: 4690 }, { port: 4690 }), { LATCHKEY_PORT: '4691' }).config.server.port).toBe(
      4691,
    )
  })

  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ['127.0.0.1', '0.0.0.0'],
    ['0.0.0.0', 'host.example'],
    ['::', '127.0.0.1'],
    ['::1', '::'],
    ['::', '0.0.0.0'],
    ['localhost', '127.0.0.1'],
    ['127.0.0.1', 'LocalHost'],
    ['Host.example', 'host.example'],
  ])('may not have one port on %s and %s', (one, other) => {
    const config = server({ host: one, port: 4690 }, { host: other, port: 4690 })
    expect(problems(config)).toEqual([
      expect.stringMatching(/^server\.webhooks\.port: is the port of server /),
    ])
  })

  it.each([
    ['127.0.0.1', '127.0.0.2'],
    ['127.0.0.1', '::1'],
    ['0.0.0.0', '::1'],
    ['10.0.0.1', 'localhost'],
    ['a.example', 'b.example'],
  ])('may have one port on %s and %s', (one, other) => {
    expect(load(server({ host: one, port: 4690 }, { host: other, port: 4690 })).config.server.port).toBe(4690)
  })

  it('may both leave their port to the system', () => {
    expect(load(server({ port: 0 }, { port: 0 }, { port: 0 })).config.server.port).toBe(0)
  })
})

describe('the environment', () => {
  it('overrides host, port, database and log level', () => {
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
  })

  it('overrides nothing with an empty variable', () => {
    const env = { LATCHKEY_HOST: '', LATCHKEY_PORT: '', LATCHKEY_DATABASE_URL: '', LATCHKEY_LOG_LEVEL: '' }
    expect(load({ server: { port: 1234 } }, env).config.server).toMatchObject({
      host: '127.0.0.1',
      port: 1234,
    })
  })

  it.each(['65536', '-1', '80x', '1e3', ' 80', '0x50'])('is refused for the port "%s"', (port) => {
    expect(problems({}, { LATCHKEY_PORT: port })).toEqual([expect.stringMatching(/^LATCHKEY_PORT: must be /)])
  })

  it('is refused for each other override that is wrong', () => {
    const env = { LATCHKEY_HOST: ' ', LATCHKEY_DATABASE_URL: 'mysql://x', LATCHKEY_LOG_LEVEL: 'INFO' }
    expect(problems({}, env)).toEqual([
      'LATCHKEY_HOST: is empty',
      'LATCHKEY_DATABASE_URL: must be sqlite:<path>, such as sqlite:./data/latchkey.db',
      'LATCHKEY_LOG_LEVEL: must be one of fatal, error, warn, info, debug, trace, silent',
    ])
  })
})

describe('the database', () => {
  it.each([
    ['sqlite:./data/a.db', 'data/a.db'],
    ['sqlite:a.db', 'a.db'],
    ['sqlite:../a.db', '../a.db'],
  ])('%s is relative to the config file', (url, file) => {
    const folder = temporaryFolder()
    const path = writeConfig({ database: { url } }, folder)
    expect(loadConfig({ path, env: {} }).config.database.file).toBe(join(folder, file))
  })

  it.each(['sqlite:/srv/a.db', 'sqlite:///srv/a.db'])('%s is absolute', (url) => {
    expect(load({ database: { url } }).config.database.file).toBe('/srv/a.db')
  })

  it.each(['postgres://user:pass@db/x', 'postgresql://db/x'])(
    '%s is not supported by this version',
    (url) => {
      expect(problems({ database: { url } })).toEqual([
        'database.url: PostgreSQL is not supported by this version: use sqlite:<path>',
      ])
    },
  )

  it.each(['sqlite:', 'sqlite::memory:'])('%s would lose acknowledged events', (url) => {
    expect(problems({ database: { url } })).toEqual([
      'database.url: must name a file, since acknowledged events have to last',
    ])
  })
})
