import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { EXAMPLE_POLICY } from '../../src/config/example-policy.js'
import { configJsonSchema } from '../../src/config/json-schema.js'
import { loadConfig } from '../../src/config/load.js'
import { configSchema } from '../../src/config/schema.js'

const ROOT = join(import.meta.dirname, '..', '..')
const EXAMPLE = join(ROOT, 'config.example.json')

const env = {
  LATCHKEY_V3_SECRET: 'whsec_v3',
  DISCORD_BOT_TOKEN: 'discord-token',
  TELEGRAM_BOT_TOKEN: 'telegram-token',
  LATCHKEY_WEBHOOK_SECRET: `whsec_${'A'.repeat(32)}`,
  PAYMENTS_API_KEY: 'sk_live_1',
}

function readFile(path: string): string {
  return path === '/run/secrets/legacy' ? 'whsec_legacy\n' : readFileSync(path, 'utf8')
}

describe('config.example.json', () => {
  it('loads without a problem or a warning once its references are set', () => {
    const { config, warnings } = loadConfig({ path: EXAMPLE, env, readFile })
    expect(warnings).toEqual([])
    expect(
      config.endpoints.map(({ name, environment, secrets }) => [name, environment, secrets[0]?.secret]),
    ).toEqual([
      ['v3', 'live', 'whsec_v3'],
      ['legacy', 'live', 'whsec_legacy'],
      ['sandbox', 'sandbox', 'whsec_...'],
    ])
  })

  it('shows every section that there is', () => {
    const example = JSON.parse(readFileSync(EXAMPLE, 'utf8')) as object
    expect(Object.keys(example).sort()).toEqual(Object.keys(configSchema.shape).sort())
  })

  it('has the policy that a first start is made with', () => {
    expect(JSON.parse(readFileSync(EXAMPLE, 'utf8'))).toHaveProperty('policy', EXAMPLE_POLICY)
  })
})

describe('config.schema.json', () => {
  it('is what the schema in the code generates (`npm run schema`)', () => {
    expect(readFileSync(join(ROOT, 'config.schema.json'), 'utf8')).toBe(configJsonSchema())
  })
})
