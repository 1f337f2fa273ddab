import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import {
  endpoint,
  fromEnv,
  fromFile,
  load,
  problems,
  refusal,
  temporaryFolder,
  writeConfig,
} from './config-file.js'

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

  it('in what a variable holds is not followed', () => {
    expect(firstSecret(fromEnv('A'), { A: fromEnv('B'), B: 'whsec_b' })).toBe(fromEnv('B'))
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
