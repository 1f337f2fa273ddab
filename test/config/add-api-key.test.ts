import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addApiKey } from '../../src/config/api-keys.js'
import { refusal } from './config-file.js'

const PATH = '/etc/latchkey/config.json'
const entry = {
  name: 'app',
  hash: `sha256:${'0'.repeat(64)}`,
  scopes: ['read' as const],
  environments: ['live' as const],
}
const written = `{ "name": "app", "hash": "${entry.hash}", "scopes": ["read"], "environments": ["live"] }`

describe('adding an API key to the text of a config', () => {
  it.each([
    ['{}', `{ "api": { "keys": [${written}] } }`],
    ['{\n  "a": 1\n}\n', `{\n  "a": 1,\n  "api": { "keys": [${written}] }\n}\n`],
    ['{ "api": {} }', `{ "api": { "keys": [${written}] } }`],
    ['{ "api": { "keys": [] } }', `{ "api": { "keys": [ ${written} ] } }`],
    ['{"api":{"keys":[{"name":"b"}]}}', `{"api":{"keys":[{"name":"b"},${written}]}}`],
    [
      '{ "api": { "keys": [\n    { "name": "b" }\n  ] } }',
      `{ "api": { "keys": [\n    { "name": "b" },\n    ${written}\n  ] } }`,
    ],
  ])('sets it into %j and leaves the rest alone', (text, expected) => {
    expect(addApiKey(text, PATH, entry)).toBe(expected)
  })

  it('adds the entry to the list, whatever else the config holds and however it is laid out', () => {
    const others = fc.array(fc.record({ name: fc.string().filter((name) => name !== 'app') }))
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), others, fc.nat(4), (rest, keys, indent) => {
        const config = { ...rest, api: { keys } }
        const added: unknown = JSON.parse(addApiKey(JSON.stringify(config, null, indent), PATH, entry))
        const expected = { ...config, api: { keys: [...keys, entry] } }
        expect(added).toEqual(JSON.parse(JSON.stringify(expected)))
      }),
    )
  })

  it('refuses a name that is taken', () => {
    expect(refusal(() => addApiKey('{ "api": { "keys": [{ "name": "app" }] } }', PATH, entry)).code).toBe(
      'usage',
    )
  })

  it.each([
    ['[]', ''],
    ['{ "api": [] }', 'api'],
    ['{ "api": { "keys": {} } }', 'api.keys'],
  ])('refuses %s, which has no place for it', (text, path) => {
    expect(refusal(() => addApiKey(text, PATH, entry))).toMatchObject({
      code: 'config_invalid',
      issues: [{ path }],
    })
  })
})
