import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createFirstConfig } from '../../src/config/first-start.js'
import { loadConfig } from '../../src/config/load.js'
import { temporaryFolder } from '../world.js'
import { refusal } from './config-file.js'

function firstStart({ isTerminal }: { isTerminal: boolean }) {
  const path = join(temporaryFolder(), 'config.json')
  return { path, ...createFirstConfig({ path, isTerminal }) }
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

describe('the config of a first start', () => {
  it('loads without a problem or a warning, and has one sandbox endpoint', () => {
    const { path } = firstStart({ isTerminal: true })
    const { config, warnings } = loadConfig({ path, env: {} })
    expect(warnings).toEqual([])
    expect(config.endpoints).toEqual([
      {
        name: 'sandbox',
        environment: 'sandbox',
        secrets: [{ secret: expect.stringMatching(/^whsec_[\w-]{43}$/), notAfter: null }],
        toleranceSeconds: 300,
      },
    ])
  })

  it('admits the key that it shows, and keeps only its hash', () => {
    const { path, key } = firstStart({ isTerminal: true })
    expect(loadConfig({ path, env: {} }).config.apiKeys).toEqual([
      {
        name: 'first',
        sha256: createHash('sha256').update(key).digest('hex'),
        scopes: ['read', 'write', 'events', 'metrics', 'admin'],
        environments: ['sandbox'],
      },
    ])
    expect(readFileSync(path, 'utf8')).not.toContain(key)
  })

  it('is for its owner alone, and leaves nothing else behind', () => {
    const { path } = firstStart({ isTerminal: true })
    expect(modeOf(path)).toBe('600')
    expect(readdirSync(dirname(path))).toEqual(['config.json'])
  })

  it('has another secret and another key every time', () => {
    const [one, two] = [firstStart({ isTerminal: true }), firstStart({ isTerminal: true })]
    expect(one.key).not.toBe(two.key)
    expect(secretOf(one.path)).not.toBe(secretOf(two.path))
  })

  it('never takes the place of a file that is there', () => {
    const path = join(temporaryFolder(), 'config.json')
    writeFileSync(path, 'mine')
    expect(refusal(() => createFirstConfig({ path, isTerminal: false })).code).toBe('config_invalid')
    expect(readFileSync(path, 'utf8')).toBe('mine')
    expect(readdirSync(dirname(path))).toEqual(['config.json'])
  })

  it('shows the key and the next commands on a terminal', () => {
    const { path, key, text } = firstStart({ isTerminal: true })
    expect(text).toContain(`API key (shown only now): ${key}\n`)
    expect(text).toContain('  npx latchkey trigger payment.authorized --customer cus_1 --product pro_1\n')
    expect(text).toContain('  npx latchkey check cus_1\n')
    expect(text).toContain(`  export LATCHKEY_KEY=${key}\n`)
    expect(text).toContain(
      '  curl -H "Authorization: Bearer $LATCHKEY_KEY" http://127.0.0.1:4680/entitlements/cus_1\n',
    )
    expect(existsSync(join(dirname(path), 'data'))).toBe(false)
  })

  it('puts the key into a file of its own where nobody reads along, and only names that', () => {
    const { path, key, text } = firstStart({ isTerminal: false })
    const data = join(dirname(path), 'data')
    expect(text).toContain('API key: in data/first-key.txt\n')
    expect(text).toContain('  export LATCHKEY_KEY=$(cat data/first-key.txt)\n')
    expect(text).not.toContain(key)
    expect(readFileSync(join(data, 'first-key.txt'), 'utf8')).toBe(`${key}\n`)
    expect([modeOf(data), modeOf(join(data, 'first-key.txt'))]).toEqual(['700', '600'])
  })
})

function secretOf(path: string): string | undefined {
  return loadConfig({ path, env: {} }).config.endpoints[0]?.secrets[0]?.secret
}
