import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJsonText } from '../../src/config/json-text.js'
import { loadConfig } from '../../src/config/load.js'
import { endpoint, problems, refusal, writeConfig } from './config-file.js'

const PATH = '/etc/latchkey/config.json'

describe('JSON text', () => {
  it.each([
    ['a comma after the last member', '{"a":1,}', 'line 1, column 8: expected a key in quotation marks'],
    ['a comma after the last element', '{\n  "a": [1,]\n}', 'line 2, column 11: expected a value'],
    ['a forgotten comma', '{"a": 1\n "b": 2}', 'line 2, column 2: expected "," or "}"'],
    ['a forgotten quotation mark', '{"a": "b}', 'line 1, column 7: expected a value'],
    ['a comment', '{} // mine', 'line 1, column 4: expected nothing more'],
    ['a byte order mark', '\ufeff{}', 'line 1, column 1: expected a value'],
    ['nothing at all', '', 'line 1, column 1: expected a value'],
    ['a bracket of the wrong kind', '[1}', 'line 1, column 3: expected "," or "]"'],
  ])('is refused for %s, with its place', (_, text, message) => {
    const path = writeConfig(text)
    expect(refusal(() => loadConfig({ path, env: {} }))).toMatchObject({
      code: 'config_invalid',
      message: `the config file ${path} is not valid JSON at ${message}`,
      issues: [],
    })
  })

  it('is refused without quoting a secret that stands at the error', () => {
    const { message, issues, cause } = refusal(() => parseJsonText('{"secrets": [whsec_very_secret]}', PATH))
    expect(JSON.stringify([message, issues, cause])).not.toContain('whsec')
  })

  it.each([
    ['lists', '['.repeat(1_000_000), 'line 1, column 65'],
    ['objects', '{"a":'.repeat(100_000), 'line 1, column 321'],
    ['lists that end', `${'[\n'.repeat(65)}${']'.repeat(65)}`, 'line 65, column 1'],
    ['a product', `{"products":{"p":${'['.repeat(100_000)}`, 'line 1, column 80'],
  ])('is refused for %s nested beyond reason, with their place', (_, text, place) => {
    const path = writeConfig(text)
    expect(refusal(() => loadConfig({ path, env: {} }))).toMatchObject({
      code: 'config_invalid',
      message: `the config file ${path} is nested more than 64 levels deep at ${place}`,
    })
  })

  it('may be as long as it likes', () => {
    const text = JSON.stringify({ a: '\\"'.repeat(1_000_000), b: Array(100_000).fill('\n') })
    expect(parseJsonText(text, PATH).value).toEqual(JSON.parse(text))
    expect(isRead(() => parseJsonText(text.slice(0, -2), PATH))).toBe(false)
  })

  it('reads as JSON.parse reads it, whatever its white space', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(4), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        expect(parseJsonText(text, PATH).value).toEqual(JSON.parse(text))
      }),
    )
  })

  it('is refused exactly where JSON.parse refuses it', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[],:"\\ 10-e.tn\n') }), (text) => {
        expect(isRead(() => parseJsonText(text, PATH))).toBe(isRead(() => JSON.parse(text)))
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a key given twice', () => {
  it('is a problem, although JSON.parse keeps the last', () => {
    const one = JSON.stringify(endpoint('live', 'whsec_a'))
    expect(problems(`{ "endpoints": { "v3": ${one}, "v3": ${one} } }`)).toEqual([
      'endpoints.v3: is given twice',
    ])
  })

  it('is found under another spelling', () => {
    expect(parseJsonText('[{"a": 1, "\\u0061": 2}]', PATH).duplicates).toEqual([
      { path: [0, 'a'], message: 'is given twice' },
    ])
  })

  it('in different objects is fine', () => {
    expect(parseJsonText('{"a": {"x": 1}, "b": {"x": 1}}', PATH).duplicates).toEqual([])
  })
})

describe('a key that is named like a part of JavaScript', () => {
  it.each([
    ['', '{"__proto__": {"sync": {}}}', '__proto__'],
    ['in a product', '{"products": {"p": {"__proto__": {"name": "P"}}}}', 'products.p.__proto__'],
    ['of a product', '{"products": {"__proto__": {"name": "P"}}}', 'products.__proto__'],
    ['in another spelling', '{"products": {"\\u005f_proto__": {"name": 5}}}', 'products.__proto__'],
    ['of a known section', '{"server": {"constructor": 1}}', 'server.constructor'],
    ['in a list', '{"api": {"keys": [{"prototype": 1}]}}', 'api.keys[0].prototype'],
  ])('is a problem %s', (_, text, path) => {
    expect(problems(text).filter((line) => line.startsWith(path))).toEqual([
      `${path}: is a name that no key may have`,
    ])
  })
})

function isRead(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}
