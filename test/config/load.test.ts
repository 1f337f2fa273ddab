import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { temporaryFolder } from '../world.js'
import { endpoint, fromEnv, load, problems, refusal, writeConfig } from './config-file.js'

describe('a config file', () => {
  it('takes its defaults for whatever is left out', () => {
    const folder = temporaryFolder()
    const path = writeConfig({ endpoints: { v3: endpoint('live', 'whsec_a') } }, folder)

    expect(loadConfig({ path, env: {} }).config).toEqual({
      path,
      server: { host: '127.0.0.1', port: 4680, trustProxy: 0, webhooks: null, metrics: null },
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
        },
      ],
      apiKeys: [],
      policy: DOCUMENTED_POLICY,
      identity: { ref: 'externalRef' },
      products: [],
      sync: {
        discord: null,
        telegram: null,
        webhook: null,
        sweepEveryMs: 3_600_000,
        removals: { atMost: 20, percent: 10 },
      },
      provider: null,
      log: { level: 'info' },
    })
  })

  it('that does not exist is missing, and that is another error than being wrong', () => {
    const path = join(temporaryFolder(), 'config.json')
    expect(refusal(() => loadConfig({ path, env: {} }))).toMatchObject({
      code: 'config_missing',
      message: `there is no config file ${path}`,
    })
  })

  it('that is a folder is refused with the reason', () => {
    const path = temporaryFolder()
    expect(refusal(() => loadConfig({ path, env: {} }))).toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('EISDIR'),
    })
  })

  it('is refused with every problem at once, each with its path', () => {
    const config = {
      servr: {},
      server: { port: 70_000, webhooks: {} },
      endpoints: {
        'Bad Name': endpoint('live', 'whsec_a'),
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
      'endpoints.sandbox.secrets[0]: is a secret of the live endpoint live too: a sandbox secret must open nothing live',
      'endpoints.v3.secrets[0]: is empty',
      'endpoints.v3.secrets[1].notAfter: must be an ISO 8601 time, such as 2027-01-31T00:00:00Z',
      'endpoints.v3.tolerance: is not a known key',
      'endpoints["Bad Name"]: must be a name of 1 to 64 of a-z, 0-9 and "-"',
      expect.stringMatching(
        /^policy\.grantOn\.crypto\[0\]: must be a payment or checkout event type: payment\./,
      ),
      'policy.lapseAfter: must be a duration, such as "45d"',
      'server.port: must be at most 65535',
      'server.webhooks.port: is required',
      'servr: is not a known key',
    ])
  })

  it.each([
    ['a list', []],
    ['a number', 3],
    ['null', null],
  ])('that is %s is refused', (_, config) => {
    expect(problems(config)).toEqual([': must be an object'])
  })

  it('may name its schema, for editors', () => {
    expect(load({ $schema: './config.schema.json' }).config.endpoints).toEqual([])
  })

  it('warns that nothing can be received while it has no endpoint', () => {
    expect(load({}).warnings).toEqual([
      { path: 'endpoints', message: 'is empty: no delivery can be received' },
    ])
  })
})
