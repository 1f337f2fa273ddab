import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJsonText } from '../../src/config/json-text.js'
import { loadConfig } from '../../src/config/load.js'
import { endpoint, problems, refusal, writeConfig } from './config-file.js'

const PATH = '/etc/latchkey/config.json'
const nested = (place: string) => `is nested more than 64 levels deep at ${place}`
const invalid = (place: string) => `is not valid JSON at ${place}`

describe('JSON text', () => {
  it.each([
    [
      'a comma after the last member',
      '{"a":1,}',
      invalid('line 1, column 8: expected a key in quotation marks'),
    ],
    ['a comma after the last element', '{\n  "a": [1,]\n}', invalid('line 2, column 11: expected a value')],
    ['a forgotten comma', '{"a": 1\n "b": 2}', invalid('line 2, column 2: expected "," or "}"')],
    ['a forgotten quotation mark', '{"a": "b}', invalid('line 1, column 7: expected a value')],
    ['a comment', '{} // mine', invalid('line 1, column 4: expected nothing more')],
    ['a byte-order mark', '\ufeff{}', 'begins with a byte-order mark: save it as UTF-8 without one'],
    ['nothing at all', '', invalid('line 1, column 1: expected a value')],
    ['a bracket of the wrong kind', '[1}', invalid('line 1, column 3: expected "," or "]"')],
    ['lists nested beyond reason', '['.repeat(1_000_000), nested('line 1, column 65')],
    ['objects nested beyond reason', '{"a":'.repeat(100_000), nested('line 1, column 321')],
    ['lists nested so that end', `${'[\n'.repeat(65)}${']'.repeat(65)}`, nested('line 65, column 1')],
    ['a product nested so', `{"products":{"p":${'['.repeat(100_000)}`, nested('line 1, column 80')],
  ])('is refused for %s, with its place', (_, text, what) => {
    const path = writeConfig(text)
    const message = `the config file ${path} ${what}`
    const refused = refusal(() => loadConfig({ path, env: {} }))
    expect(refused).toMatchObject({ code: 'config_invalid', message, issues: [] })
  })

  it('is refused without quoting a secret that is at the error', () => {
    const { message, issues, cause } = refusal(() => parseJsonText('{"secrets": [whsec_very_secret]}', PATH))
    expect(JSON.stringify([message, issues, cause])).not.toContain('whsec')
  })

  it('may be as long as it likes', () => {
    const text = JSON.stringify({ a: '\\"'.repeat(1_000_000), b: Array(100_000).fill('\n') })
    expect(parseJsonText(text, PATH).value).toEqual(JSON.parse(text))
    expect(isRead(() => parseJsonText(text.slice(0, -2), PATH))).toBe(false)
  })

  it('is read as JSON.parse reads it, and refused exactly where JSON.parse refuses it', () => {
    const read = fc.property(fc.jsonValue(), fc.nat(4), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      expect(parseJsonText(text, PATH).value).toEqual(JSON.parse(text))
    })
    fc.assert(read)
    const refused = fc.property(fc.string({ unit: fc.constantFrom(...'{}[],:"\\ 10-e.tn\n') }), (text) => {
      expect(isRead(() => parseJsonText(text, PATH))).toBe(isRead(() => JSON.parse(text)))
    })
    fc.assert(refused, { numRuns: 2_000 })
  })
})

describe('a key', () => {
  it('given twice is a problem, although JSON.parse keeps the last, also under another spelling', () => {
    const one = JSON.stringify(endpoint('live', 'whsec_a'))
    const twice = `{ "endpoints": { "v3": ${one}, "v3": ${one} } }`
    expect(problems(twice)).toEqual(['endpoints.v3: is given twice'])
    const found = (text: string) => parseJsonText(text, PATH).duplicates
    expect(found('[{"a": 1, "\\u0061": 2}]')).toEqual([{ path: [0, 'a'], message: 'is given twice' }])
    expect(found('{"a": {"x": 1}, "b": {"x": 1}}')).toEqual([])
  })

  it.each([
    ['{"__proto__": {"sync": {}}}', '__proto__'],
    [
      '{"endpoints": {"constructor": {"environment": "live", "secrets": ["whsec_a"]}}}',
      'endpoints.constructor',
    ],
    ['{"products": {"p": {"__proto__": {"name": "P"}}}}', 'products.p.__proto__'],
    ['{"products": {"__proto__": {"name": "P"}}}', 'products.__proto__'],
    ['{"products": {"\\u005f_proto__": {"name": 5}}}', 'products.__proto__'],
    ['{"server": {"constructor": 1}}', 'server.constructor'],
    ['{"api": {"keys": [{"prototype": 1}]}}', 'api.keys[0].prototype'],
  ])('named like a part of JavaScript is a problem: %s', (text, path) => {
    expect(problems(text).filter((line) => line.startsWith(path))).toEqual([
      `${path}: is not allowed as a key`,
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
