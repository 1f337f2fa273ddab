import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { run } from '../world.js'
import { endpoint, fromEnv, fromFile, KEY, OUT, refusal, SECRET, URL, writeConfig } from './config-file.js'

const PASTED = [
  `whsec_${randomBytes(24).toString('base64url')}`,
  `sk_live_${randomBytes(18).toString('hex')}`,
  `${randomBytes(32).toString('base64')}`,
  `MTE${randomBytes(16).toString('hex')}.G3x.${randomBytes(20).toString('base64url')}`,
  `123456789:AA${randomBytes(24).toString('base64url')}`,
  `sha256:${randomBytes(32).toString('hex')}`,
  'redis://shop:hunter2-hunter2@cache/shop',
]

const webhook = { url: URL, secret: OUT }
const target = { adapter: 'telegram', groupId: '-100' }

/** Every place of a config in which somebody may put a secret that is no place for one. */
const MISPLACED: readonly (readonly [string, (secret: string) => unknown])[] = [
  ['the name of an endpoint', (secret) => ({ endpoints: { [secret]: endpoint('live', SECRET) } })],
  [
    'the name of an endpoint with a problem',
    (secret) => ({ endpoints: { [secret]: { environment: 'live' } } }),
  ],
  [
    'the name of a live endpoint whose secret is a sandbox endpoint’s too',
    (secret) => ({ endpoints: { [secret]: endpoint('live', SECRET), test: endpoint('sandbox', SECRET) } }),
  ],
  ['the id of a webhook', (secret) => ({ sync: { webhooks: { [secret]: webhook } } })],
  ['the id of a webhook with a problem', (secret) => ({ sync: { webhooks: { [secret]: { url: URL } } } })],
  ['the id of a product', (secret) => ({ products: { [secret]: { targets: [target] } } })],
  ['a key of the file', (secret) => ({ [secret]: true })],
  ['a key of a section', (secret) => ({ provider: { baseUrl: URL, [secret]: '' } })],
  [
    'the API key of another environment',
    (secret) => ({ provider: { live: { baseUrl: URL, apiKey: `sk_sandbox_${secret}` } } }),
  ],
  [
    'the address of the payments API',
    (secret) => ({ provider: { live: { baseUrl: secret, apiKey: 'sk_live_1' } } }),
  ],
  ['a schedule', (secret) => ({ backfill: { schedule: secret } })],
  ['the fields of a schedule', (secret) => ({ backfill: { schedule: `0 0 1 ${secret} *` } })],
  ['a time zone', (secret) => ({ backfill: { timezone: secret } })],
  ['a key of an API key', (secret) => ({ api: { keys: [{ ...KEY, [secret]: '' }] } })],
  ['a key given twice', (secret) => `{ ${JSON.stringify(secret)}: 1, ${JSON.stringify(secret)}: 1 }`],
  ['a section with a reserved key', (secret) => `{ ${JSON.stringify(secret)}: { "constructor": 1 } }`],
  ['the hash of an API key', (secret) => ({ api: { keys: [{ ...KEY, hash: `${secret}x` }] } })],
  ['the name of a variable', (secret) => ({ endpoints: { v3: endpoint('live', fromEnv(secret)) } })],
  ['the name of a file', (secret) => ({ endpoints: { v3: endpoint('live', fromFile(secret)) } })],
  ['a reference of no kind', (secret) => ({ endpoints: { v3: endpoint('live', `\${${secret}}`) } })],
  ['the environment of an endpoint', (secret) => ({ endpoints: { v3: endpoint(secret as 'live', SECRET) } })],
  [
    'an address',
    (secret) => ({ sync: { webhook: { url: `ftp://user:${secret}@app.example`, secret: OUT } } }),
  ],
  ['the database', (secret) => ({ database: { url: secret } })],
  ['a duration', (secret) => ({ backup: { folder: 'backups', every: secret } })],
  ['the adapter of a target', (secret) => ({ products: { p: { targets: [{ adapter: secret }] } } })],
]

describe('a secret that was put into a config as', () => {
  it.each(MISPLACED)('%s is shown by no message', async (_, config) => {
    for (const secret of PASTED) {
      const path = writeConfig(config(secret))
      const { message, issues } = refusal(() => loadConfig({ path, env: {} }))
      const { code, stdout, stderr } = await run('/nowhere', `config check --config ${path}`)
      expect(code).toBe(2)
      expect(issues.length).toBeGreaterThan(0)
      for (const said of [message, JSON.stringify(issues), stdout, stderr]) {
        for (let at = 0; at + 8 <= secret.length; at += 1)
          expect(said).not.toContain(secret.slice(at, at + 8))
      }
    }
  })

  it('the name of a key that is to be revoked is not shown either', async () => {
    const path = writeConfig({ api: { keys: [{ ...KEY, name: `lk_${'a'.repeat(43)}` }] } })
    const { stderr } = await run('/nowhere', `keys revoke lk_${'b'.repeat(43)} --config ${path}`)
    expect(stderr).toMatch(
      /^error: no key is named "lk_… \(46 characters\)": the keys are lk_… \(46 characters\)\n$/,
    )
  })
})

describe('a name in a config that has a problem', () => {
  it.each([
    ['Live', 'endpoints.Live: '],
    ['my_shop', 'endpoints["m… (7 characters)"]: '],
    ['live', 'endpoints.live.secrets: '],
  ])('%s can still be found by the message', (name, shown) => {
    const { issues } = refusal(() =>
      loadConfig({
        path: writeConfig({ endpoints: { [name]: { environment: 'live', secrets: [] } } }),
        env: {},
      }),
    )
    expect(issues.map(({ path, message }) => `${path}: ${message}`)).toEqual(
      expect.arrayContaining([expect.stringContaining(shown)]),
    )
  })
})
