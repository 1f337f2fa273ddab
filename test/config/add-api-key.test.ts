import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addApiKey } from '../../src/config/api-keys.js'
import { refusal } from './config-file.js'

const HASH = `sha256:${'0'.repeat(64)}`
const entry = { name: 'app', hash: HASH, scopes: ['read' as const], environments: ['live' as const] }
const added = (text: string) => addApiKey(text, '/etc/latchkey/config.json', entry)

describe('adding an API key to the text of a config', () => {
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

  it.each(['{}', '{ "api": {} }', '{ "api": { "keys": [] } }'])('makes the list in %j', (text) => {
    expect(JSON.parse(added(text))).toEqual({ api: { keys: [entry] } })
  })

  it('leaves the other lines of a file as they are', () => {
    const lines = ['{', '   "a":1,', '  "api": {', '    "keys": []', '  }', '}', '']
    expect(added(lines.join('\n')).split('\n')).toEqual(expect.arrayContaining(['   "a":1,', '  "api": {']))
  })

  it('refuses a name that is taken, and a config that has no place for it', () => {
    expect(refusal(() => added('{ "api": { "keys": [{ "name": "app" }] } }')).code).toBe('usage')
    for (const text of ['[]', '{ "api": [] }', '{ "api": { "keys": {} } }']) {
      const issues = [{ path: 'api.keys' }]
      expect(refusal(() => added(text))).toMatchObject({ code: 'config_invalid', issues })
    }
  })
})
