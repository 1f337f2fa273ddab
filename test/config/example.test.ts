import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import { configJsonSchema } from '../../src/config/schema.js'

const ROOT = join(import.meta.dirname, '..', '..')
const EXAMPLE = join(ROOT, 'config.example.json')

const env = {
  LATCHKEY_V3_SECRET: 'whsec_v3_0123456789abcdef',
  DISCORD_BOT_TOKEN: 'discord-token',
  TELEGRAM_BOT_TOKEN: 'telegram-token',
  LATCHKEY_WEBHOOK_SECRET: `whsec_${'A'.repeat(32)}`,
  PAYMENTS_API_KEY: 'sk_live_1',
  PAYMENTS_SANDBOX_API_KEY: 'sk_sandbox_1',
}

function readFile(path: string): string {
  return path === '/run/secrets/legacy' ? 'whsec_legacy_0123456789abcdef\n' : readFileSync(path, 'utf8')
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
}

/** The options of a schema that none of the values has; what lies within one that is not shown is not told. */
function notShown(schema: JsonSchema, values: readonly unknown[], path = ''): string[] {
  const objects = values.filter((value): value is Record<string, unknown> => Object(value) === value)
  const { properties = {}, additionalProperties, items, anyOf = [], oneOf = [] } = schema

  const options = Object.entries(properties).flatMap(([name, option]) => {
    const shown = objects.filter((object) => Object.hasOwn(object, name)).map((object) => object[name])
    return shown.length === 0 ? [`${path}${name}`] : notShown(option, shown, `${path}${name}.`)
  })
  const inside = objects.flatMap((object) => Object.values(object))
  const named =
    typeof additionalProperties === 'object' ? notShown(additionalProperties, inside, `${path}*.`) : []
  const listed = items === undefined ? [] : notShown(items, inside, path)
  const alternatives = [...anyOf, ...oneOf].flatMap((one) => notShown(one, values, path))
  return [...options, ...named, ...listed, ...alternatives]
}

describe('config.example.json', () => {
  it('loads once its references are set, and warns only of the secret to fill in', () => {
    const { config, warnings } = loadConfig({ path: EXAMPLE, env, readFile })
    expect(warnings.map(({ path }) => path)).toEqual(['endpoints.sandbox.secrets[0]'])
    expect(
      config.endpoints.map(({ name, environment, secrets }) => [name, environment, secrets[0]?.secret]),
    ).toEqual([
      ['v3', 'live', 'whsec_v3_0123456789abcdef'],
      ['legacy', 'live', 'whsec_legacy_0123456789abcdef'],
      ['sandbox', 'sandbox', 'whsec_...'],
    ])
  })

  it('shows every option that there is', () => {
    const example: unknown = JSON.parse(readFileSync(EXAMPLE, 'utf8'))
    const schema = JSON.parse(configJsonSchema()) as JsonSchema
    // What does not go with the rest, or is of an earlier version.
    const others = {
      backup: { every: '24h' },
      provider: { baseUrl: 'https://payments.example', apiKey: 'key' },
    }
    expect(notShown(schema, [example, others])).toEqual([])
    expect(notShown(schema, [{ sync: { telegram: {} }, products: { pro_x: {} } }])).toEqual(
      expect.arrayContaining(['server', 'sync.telegram.apiUrl', 'products.*.name']),
    )
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
