import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addApiKey } from '../../src/config/api-keys.js'
import { refusal } from './config-file.js'

const HASH = `sha256:${'0'.repeat(64)}`
const entry = { name: 'app', hash: HASH, scopes: ['read' as const], environments: ['live' as const] }
const written = `{ "name": "app", "hash": "${HASH}", "scopes": ["read"], "environments": ["live"] }`
const added = (text: string) => addApiKey(text, '/etc/latchkey/config.json', entry)

describe('adding an API key to the text of a config', () => {
  it.each([
    ['{}', `{ "api": { "keys": [${written}] } }`],
    ['{\n  "a": 1\n}\n', `{\n  "a": 1,\n  "api": { "keys": [${written}] }\n}\n`],
    ['{ "api": {} }', `{ "api": { "keys": [${written}] } }`],
    ['{ "api": { "keys": [] } }', `{ "api": { "keys": [ ${written} ] } }`],
    ['{"api":{"keys":[{"name":"b"}]}}', `{"api":{"keys":[{"name":"b"},${written}]}}`],
    [
      '{ "api": { "keys": [\n { "name": "b" }\n] } }',
      `{ "api": { "keys": [\n { "name": "b" },\n ${written}\n] } }`,
    ],
  ])('sets it into %j and leaves the rest alone', (text, expected) => {
    expect(added(text)).toBe(expected)
  })

  it('adds the entry to the list, whatever else the config holds and however it is laid out', () => {
    const others = fc.array(fc.record({ name: fc.string().filter((name) => name !== 'app') }))
    const property = fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      others,
      fc.nat(4),
      (rest, keys, indent) => {
        const text = JSON.stringify({ ...rest, api: { keys } }, null, indent)
        const expected = JSON.stringify({ ...rest, api: { keys: [...keys, entry] } })
        expect(JSON.parse(added(text))).toEqual(JSON.parse(expected))
      },
    )
    fc.assert(property)
  })

  it('refuses a name that is taken, and a config that has no place for it', () => {
    expect(refusal(() => added('{ "api": { "keys": [{ "name": "app" }] } }')).code).toBe('usage')
    for (const [text, path] of [
      ['[]', ''],
      ['{ "api": [] }', 'api'],
      ['{ "api": { "keys": {} } }', 'api.keys'],
    ] as const) {
      expect(refusal(() => added(text))).toMatchObject({ code: 'config_invalid', issues: [{ path }] })
    }
  })
})
