import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import type { Config } from '../../src/config/types.js'
import { temporaryFolder } from '../world.js'
import { endpoint, fromEnv, fromFile, load, problems, refusal, writeConfig } from './config-file.js'

function firstSecret(secret: string, env: Record<string, string> = {}): string | undefined {
  return load({ endpoints: { v3: endpoint('live', secret) } }, env).config.endpoints[0]?.secrets[0]?.secret
}

function problemsOf(secret: unknown, env: Record<string, string> = {}): string[] {
  return problems({ endpoints: { v3: endpoint('live', secret) } }, env)
}

describe('a reference', () => {
  it('to a variable becomes its value, anywhere in a text and as often as wanted', () => {
    expect(firstSecret(fromEnv('A'), { A: 'whsec_a' })).toBe('whsec_a')
    expect(firstSecret(`${fromEnv('A')}-${fromEnv('B')}`, { A: 'one', B: 'two' })).toBe('one-two')
  })

  it('in what a variable holds is a problem: its text, which anybody can read, must be no secret', () => {
    expect(problemsOf(fromEnv('A'), { A: fromEnv('B'), B: 'whsec_b' })).toEqual([
      'endpoints.v3.secrets[0]: names the variable A, whose value holds a "${" that nothing replaces',
    ])
  })

  it('to bytes that are no text is a problem: as text, all such bytes would be alike', () => {
    const file = join(temporaryFolder(), 'secret')
    writeFileSync(file, Buffer.alloc(32, 0xff))
    expect(problemsOf(fromFile(file))).toEqual([
      `endpoints.v3.secrets[0]: names the file ${file}, which is not UTF-8 text`,
    ])
  })

  it.each([
    ['a file that ends in a newline', 'whsec_a\n', 'whsec_a'],
    ['a file that ends in a Windows newline', 'whsec_a\r\n', 'whsec_a'],
    ['a file that ends in two newlines', 'whsec_a\n\n', 'whsec_a\n'],
    ['a file without a newline', 'whsec_a', 'whsec_a'],
  ])('to %s drops one final newline and no more', (_, content, secret) => {
    const file = join(temporaryFolder(), 'secret')
    writeFileSync(file, content)
    expect(firstSecret(fromFile(file))).toBe(secret)
  })

  it('to a relative file is relative to the config file', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'secret'), 'whsec_beside')
    const path = writeConfig({ endpoints: { v3: endpoint('live', fromFile('./secret')) } }, folder)
    expect(loadConfig({ path, env: {} }).config.endpoints[0]?.secrets[0]?.secret).toBe('whsec_beside')
  })

  it('to an unset variable is a problem at its path', () => {
    expect(problemsOf({ secret: fromEnv('UNSET') })).toEqual([
      "endpoints.v3.secrets[0].secret: names the variable UNSET, which is not set in this process's environment",
    ])
  })

  it('to an empty variable is an empty secret', () => {
    expect(problemsOf(fromEnv('EMPTY'), { EMPTY: '' })).toEqual(['endpoints.v3.secrets[0]: is empty'])
  })

  it('to an unreadable file is a problem at its path', () => {
    expect(problemsOf(fromFile('/nowhere/secret'))).toEqual([
      "endpoints.v3.secrets[0]: names the file /nowhere/secret, which can't be read (ENOENT)",
    ])
  })

  it.each(['ENV:A}', 'env:}', 'A}', 'env:A', '}', ''])(
    'that is misspelt as a dollar sign, "{" and "%s" does not become a literal secret',
    (rest) => {
      expect(problemsOf(`\${${rest}`, { A: 'whsec_a' })).toEqual([
        'endpoints.v3.secrets[0]: has a "${" that is no reference: write env:NAME or file:/path between its braces',
      ])
    },
  )

  it('that stays unresolved in two places is not taken for a shared secret', () => {
    const shared = fromEnv('UNSET')
    const config = { endpoints: { v3: endpoint('live', shared), sandbox: endpoint('sandbox', shared) } }
    expect(problems(config)).toHaveLength(2)
  })

  it('to a bot token or an API key is resolved too', () => {
    const { config } = load(
      {
        sync: { discord: { botToken: fromEnv('BOT') } },
        provider: { baseUrl: 'https://payments.example', apiKey: fromEnv('API') },
      },
      { BOT: 'bot-token', API: 'sk_live_1' },
    )
    expect([config.sync.discord?.botToken, config.provider?.apiKey]).toEqual(['bot-token', 'sk_live_1'])
  })
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
      telegram: { botToken: fromEnv('BOT'), updates: { url, secret: fromEnv('UPDATES') } },
      webhook: { url, secret: [`whsec_${'A'.repeat(32)}`, fromEnv('OUT')] },
    },
    provider: { baseUrl: url, apiKey: fromEnv('API') },
  }
  const whenRead = (config: unknown) => {
    const path = writeConfig(config)
    return { path, ...loadConfig({ path, env: {}, secrets: 'when read' }) }
  }

  it('is no problem of the rest', () => {
    const { config } = whenRead(CONFIG)
    expect(config.endpoints.map(({ name, environment }) => [name, environment])).toEqual([
      ['live', 'live'],
      ['sandbox', 'sandbox'],
    ])
    expect(config.endpoints[0]?.secrets.map(({ notAfter }) => notAfter)).toEqual([
      null,
      null,
      Date.UTC(2027, 0, 31),
    ])
    expect(config.endpoints[0]?.secrets[0]?.secret).toBe('whsec_0123456789abcdef')
    expect(config.sync.webhook?.secrets[0]).toBe(`whsec_${'A'.repeat(32)}`)
  })

  it.each<[string, (config: Config) => unknown]>([
    ['endpoints.live.secrets[1]', ({ endpoints }) => endpoints[0]?.secrets[1]?.secret],
    ['endpoints.live.secrets[2].secret', ({ endpoints }) => endpoints[0]?.secrets[2]?.secret],
    ['endpoints.sandbox.secrets[0]', ({ endpoints }) => ({ ...endpoints[1]?.secrets[0] })],
    ['sync.discord.botToken', ({ sync }) => sync.discord?.botToken],
    ['sync.discord.apiUrl', ({ sync }) => sync.discord?.apiUrl],
    ['sync.telegram.botToken', ({ sync }) => JSON.stringify(sync.telegram)],
    ['sync.telegram.updates.secret', ({ sync }) => sync.telegram?.updates?.secret],
    ['sync.webhook.url', ({ sync }) => sync.webhook?.url],
    ['sync.webhook.secret[1]', ({ sync }) => sync.webhook?.secrets.map((secret) => secret)],
    ['provider.baseUrl', ({ provider }) => provider?.baseUrl],
    ['provider.apiKey', ({ provider }) => provider?.apiKey],
  ])('fails what reads %s, as the load would have', (place, read) => {
    const { path, config } = whenRead(CONFIG)
    const strict = refusal(() => loadConfig({ path, env: {} })).issues.find((issue) => issue.path === place)
    expect(strict).toBeDefined()
    expect(refusal(() => read(config))).toMatchObject({
      code: 'config_invalid',
      message: `the config file ${path} has a problem`,
      issues: [strict],
    })
  })

  it('is said to be unchecked', () => {
    const { warnings } = whenRead({ endpoints: { live: endpoint('live', fromEnv('ONE')) } })
    expect(warnings).toEqual([
      {
        path: 'endpoints.live.secrets[0]',
        message:
          "names the variable ONE, which is not set in this process's environment, and so is not checked",
      },
    ])
  })

  it.each([
    ['of what every command needs', { database: { url: `sqlite:${fromEnv('DATA')}/a.db` } }, 'database.url'],
    ['that is misspelt', { provider: { baseUrl: url, apiKey: `\${ENV:API}` } }, 'provider.apiKey'],
    [
      'to an environment',
      { endpoints: { a: { environment: url, secrets: ['whsec_a'] } } },
      'endpoints.a.environment',
    ],
  ])('is refused at the load %s', (_, config, place) => {
    expect(refusal(() => whenRead(config)).issues.map(({ path }) => path)).toEqual([place])
  })

  it('is refused where it is set, and empty', () => {
    const path = writeConfig({ endpoints: { live: endpoint('live', `whsec_${fromEnv('ONE')}`) } })
    const { issues } = refusal(() => loadConfig({ path, env: { ONE: '' }, secrets: 'when read' }))
    expect(issues).toEqual([
      { path: 'endpoints.live.secrets[0]', message: 'is empty: nothing follows whsec_' },
    ])
  })
})

describe('a secret', () => {
  it('never appears in a message, whatever is wrong with the config around it', () => {
    const secret = 'whsec_very_secret'
    const config = {
      endpoints: {
        live: endpoint('live', fromEnv('A'), { secret: fromEnv('A'), notAfter: secret, other: secret }),
        sandbox: { ...endpoint('sandbox', fromEnv('A')), environment: secret, toleranceSeconds: secret },
        other: endpoint('sandbox', secret),
      },
      api: { keys: [{ name: secret, hash: secret, scopes: [secret], environments: secret }] },
      provider: { baseUrl: secret, apiKey: '' },
      database: { url: `postgres://user:${secret}@db.example/latchkey` },
    }
    const { message, issues } = refusal(() => load(config, { A: secret, LATCHKEY_PORT: secret }))
    expect(issues.length).toBeGreaterThan(8)
    expect(JSON.stringify([message, issues])).not.toContain(secret)
  })
})
