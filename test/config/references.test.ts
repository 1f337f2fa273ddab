import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import type { Config } from '../../src/config/schema.js'
import { temporaryFolder } from '../world.js'
import { endpoint, fromEnv, fromFile, load, problems, refusal, writeConfig } from './config-file.js'

type Env = Record<string, string>
const v3 = (secret: unknown) => ({ endpoints: { v3: endpoint('live', secret) } })
const firstSecret = (secret: string, env: Env = {}) =>
  load(v3(secret), env).config.endpoints[0]?.secrets[0]?.secret
const problemsOf = (secret: unknown, env: Env = {}) => problems(v3(secret), env)
/** A file of these bytes, which a config may name. */
function fileOf(content: string | Buffer): string {
  const file = join(temporaryFolder(), 'secret')
  writeFileSync(file, content)
  return file
}
const AT = 'endpoints.v3.secrets[0]'

describe('a reference', () => {
  it('becomes the value of a variable, anywhere in a text and as often as wanted, in other sections too', () => {
    expect(firstSecret(fromEnv('A'), { A: 'whsec_a' })).toBe('whsec_a')
    expect(firstSecret(`${fromEnv('A')}-${fromEnv('B')}`, { A: 'one', B: 'two' })).toBe('one-two')
    const sync = { discord: { botToken: fromEnv('BOT') } }
    const provider = { live: { baseUrl: 'https://payments.example', apiKey: fromEnv('API') } }
    const { config } = load({ sync, provider }, { BOT: 'bot-token', API: 'sk_live_1' })
    expect([config.sync.discord?.botToken, config.provider.live?.apiKey]).toEqual(['bot-token', 'sk_live_1'])
  })

  it.each([
    ['whsec_a\n', 'whsec_a'],
    ['whsec_a\r\n', 'whsec_a'],
    ['whsec_a\n\n', 'whsec_a\n'],
    ['whsec_a', 'whsec_a'],
  ])('becomes what a file holds, without one final newline: %j', (content, secret) => {
    expect(firstSecret(fromFile(fileOf(content)))).toBe(secret)
  })

  it('to a relative file is relative to the config file', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'secret'), 'whsec_beside')
    const path = writeConfig(v3(fromFile('./secret')), folder)
    expect(loadConfig({ path, env: {} }).config.endpoints[0]?.secrets[0]?.secret).toBe('whsec_beside')
  })

  it('that leads to nothing, to no text or to another reference is a problem at its path', () => {
    const bytes = fileOf(Buffer.alloc(32, 0xff))
    const prefix = fileOf('whsec_ \n')
    const nothing = 'is empty: nothing follows whsec_'
    const unset = "names the variable UNSET, which is not set in this process's environment"
    for (const [secret, env, problem] of [
      // Its text, which anybody can read, must be no secret.
      [
        fromEnv('A'),
        { A: fromEnv('B'), B: 'whsec_b' },
        'names the variable A, whose value holds a "${" that nothing replaces',
      ],
      // As text, all such bytes would be alike.
      [fromFile(bytes), {}, `names the file ${bytes}, which is not UTF-8 text`],
      [fromFile('/nowhere/secret'), {}, "names the file /nowhere/secret, which can't be read (ENOENT)"],
      [fromFile('/dev/zero'), {}, "names the file /dev/zero, which can't be read (not a file)"],
      [fromEnv('UNSET'), {}, unset],
      [fromEnv('EMPTY'), { EMPTY: '' }, 'is empty'],
      [`whsec_${fromEnv('EMPTY')}`, { EMPTY: '' }, nothing],
      [fromEnv('PREFIX'), { PREFIX: 'whsec_' }, nothing],
      [fromFile(prefix), {}, nothing],
    ] as const) {
      expect(problemsOf(secret, env)).toEqual([`${AT}: ${problem}`])
    }
    expect(problemsOf({ secret: fromEnv('UNSET') })).toEqual([`${AT}.secret: ${unset}`])
    // One that is unresolved in two places is not taken for a shared secret.
    const shared = fromEnv('UNSET')
    const endpoints = { v3: endpoint('live', shared), sandbox: endpoint('sandbox', shared) }
    expect(problems({ endpoints })).toHaveLength(2)
  })

  it.each(['ENV:A}', 'env:}', 'A}', 'env:A', '}', ''])(
    'that is misspelt as ${%s is no literal secret',
    (rest) => {
      const problem = 'has a "${" that is not a reference: write env:NAME or file:/path between its braces'
      expect(problemsOf(`\${${rest}`, { A: 'whsec_a' })).toEqual([`${AT}: ${problem}`])
    },
  )
})

describe('a reference to a secret that is not there, where secrets are read only when used', () => {
  const url = fromEnv('URL')
  const CONFIG = {
    endpoints: {
      live: endpoint('live', 'whsec_0123456789abcdef', `whsec_${fromEnv('ONE')}`, {
        secret: fromFile('/nowhere/two'),
        notAfter: '2027-01-31T00:00:00Z',
      }),
      sandbox: endpoint('sandbox', fromEnv('ONE')),
    },
    sync: {
      discord: { botToken: fromEnv('BOT'), apiUrl: url },
      telegram: { botToken: fromEnv('BOT') },
      webhook: { url, secret: [`whsec_${'A'.repeat(32)}`, fromEnv('OUT')] },
    },
    provider: {
      live: { baseUrl: url, apiKey: fromEnv('API') },
      sandbox: { baseUrl: url, apiKey: fromEnv('API') },
    },
  }
  function whenRead(config: unknown, env: Env = {}) {
    const path = writeConfig(config)
    return { path, ...loadConfig({ path, env, secrets: 'when read' }) }
  }

  it('is no problem of the rest, and is said to be unchecked', () => {
    const { config } = whenRead(CONFIG)
    expect(config.endpoints.map(({ name }) => name)).toEqual(['live', 'sandbox'])
    const secrets = config.endpoints[0]?.secrets
    expect(secrets?.map(({ notAfter }) => notAfter)).toEqual([null, null, Date.UTC(2027, 0, 31)])
    expect(secrets?.[0]?.secret).toBe('whsec_0123456789abcdef')
    expect(config.sync.webhooks[0]?.secrets[0]).toBe(`whsec_${'A'.repeat(32)}`)
    const unset = "names the variable ONE, which is not set in this process's environment"
    expect(whenRead(v3(fromEnv('ONE'))).warnings).toEqual([
      { path: AT, message: `${unset}, so it was not checked` },
    ])
  })

  it.each<[string, (config: Config) => unknown]>([
    ['endpoints.live.secrets[1]', ({ endpoints }) => endpoints[0]?.secrets[1]?.secret],
    ['endpoints.live.secrets[2].secret', ({ endpoints }) => endpoints[0]?.secrets[2]?.secret],
    ['endpoints.sandbox.secrets[0]', ({ endpoints }) => ({ ...endpoints[1]?.secrets[0] })],
    ['sync.discord.botToken', ({ sync }) => sync.discord?.botToken],
    ['sync.discord.apiUrl', ({ sync }) => sync.discord?.apiUrl],
    ['sync.telegram.botToken', ({ sync }) => JSON.stringify(sync.telegram)],
    ['sync.webhook.url', ({ sync }) => sync.webhooks[0]?.url],
    ['sync.webhook.secret[1]', ({ sync }) => sync.webhooks[0]?.secrets.map((secret) => secret)],
    ['provider.live.baseUrl', ({ provider }) => provider.live?.baseUrl],
    ['provider.live.apiKey', ({ provider }) => provider.live?.apiKey],
    ['provider.sandbox.apiKey', ({ provider }) => provider.sandbox?.apiKey],
  ])('fails what reads %s, as the load would have', (place, read) => {
    const { path, config } = whenRead(CONFIG)
    const strict = refusal(() => loadConfig({ path, env: {} })).issues.find((issue) => issue.path === place)
    expect(strict).toBeDefined()
    const message = `the config file ${path} has a problem`
    expect(refusal(() => read(config))).toMatchObject({ code: 'config_invalid', message, issues: [strict] })
  })

  it.each<[string, object, string, Env?]>([
    ['of what every command needs', { database: { url: `sqlite:${fromEnv('DATA')}/a.db` } }, 'database.url'],
    [
      'that is misspelt',
      { provider: { live: { baseUrl: 'https://payments.example', apiKey: `\${ENV:API}` } } },
      'provider.live.apiKey',
    ],
    [
      'to an environment',
      { endpoints: { a: { environment: url, secrets: ['whsec_a'] } } },
      'endpoints.a.environment',
    ],
    ['where it is set, and empty', v3(`whsec_${fromEnv('ONE')}`), AT, { ONE: '' }],
  ])('is refused at the load %s', (_, config, place, env = {}) => {
    expect(refusal(() => whenRead(config, env)).issues.map(({ path }) => path)).toEqual([place])
  })
})

it('a secret never appears in a message, whatever is wrong with the config around it', () => {
  const secret = 'whsec_very_secret'
  const config = {
    endpoints: {
      live: endpoint('live', fromEnv('A'), { secret: fromEnv('A'), notAfter: secret, other: secret }),
      sandbox: { ...endpoint('sandbox', fromEnv('A')), environment: secret, toleranceSeconds: secret },
      other: endpoint('sandbox', secret),
    },
    api: { keys: [{ name: secret, hash: secret, scopes: [secret], environments: secret }] },
    provider: { live: { baseUrl: secret, apiKey: secret }, sandbox: { baseUrl: `http://${secret}` } },
    database: { url: `postgres://user:${secret}@db.example/latchkey` },
  }
  const { message, issues } = refusal(() => load(config, { A: secret, LATCHKEY_PORT: secret }))
  expect(issues.length).toBeGreaterThan(8)
  expect(JSON.stringify([message, issues])).not.toContain(secret)
})
