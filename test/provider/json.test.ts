import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_NESTING, parseJsonBody } from '../../src/provider/json.js'

function reasonOf(body: string | Uint8Array) {
  const parsed = parseJsonBody(typeof body === 'string' ? Buffer.from(body) : body)
  return parsed.ok ? null : parsed.reason
}

function nested(depth: number, open = '{"a":', close = '}'): string {
  return `${open.repeat(depth)}1${close.repeat(depth)}`
}

const bytes = (...values: readonly number[]) => Uint8Array.from(values)

it('a body is read when it is one JSON object', () => {
  expect(parseJsonBody(Buffer.from('{"id":"evt_1","data":{"n":[1,{"id":2}]}}'))).toEqual({
    ok: true,
    object: { id: 'evt_1', data: { n: [1, { id: 2 }] } },
  })
})

it.each([
  ['empty', '', 'not_json'],
  ['blank', ' ', 'not_json'],
  ['cut off', '{"a":1', 'not_json'],
  ['followed by more', '{}{}', 'not_json'],
  ['followed by a comment', '{}//', 'not_json'],
  ['preceded by a byte order mark', '\ufeff{}', 'not_json'],
  ['with a raw NUL in text', '{"a":"\u0000"}', 'not_json'],
  ['null', 'null', 'not_an_object'],
  ['a number', '1', 'not_an_object'],
  ['text', '"text"', 'not_an_object'],
  ['an array', '[{"id":"evt_1"}]', 'not_an_object'],
  ['with a stray byte', bytes(0x7b, 0xff, 0x7d), 'not_utf8'],
  ['with an overlong form', bytes(0x22, 0xc0, 0xaf, 0x22), 'not_utf8'],
  ['with a surrogate', bytes(0x22, 0xed, 0xa0, 0x80, 0x22), 'not_utf8'],
  ['with a sequence cut off', bytes(0x22, 0xe2, 0x82), 'not_utf8'],
  ['in UTF-16', bytes(0xff, 0xfe, 0x7b, 0x00), 'not_utf8'],
])('a body that is %s is refused', (_, body, reason) => {
  expect(reasonOf(body)).toBe(reason)
})

describe('nesting', () => {
  const others = '0,'.repeat(500)
  it.each([
    ['of objects', (depth: number) => nested(depth)],
    ['of arrays', (depth: number) => `{"a":${nested(depth - 1, '[', ']')}}`],
    ['after other values', (depth: number) => `{"a":[${others}${nested(depth - 2, '[', ']')}]}`],
  ])('%s is bounded, and overflows nothing', (_, nestedBy) => {
    expect(reasonOf(nestedBy(MAX_NESTING))).toBeNull()
    expect(reasonOf(nestedBy(MAX_NESTING + 1))).toBe('nested_too_deep')
    expect(reasonOf(nestedBy(200_000))).toBe('nested_too_deep')
  })

  it('counts no brackets in text, and none that lie side by side', () => {
    expect(reasonOf(JSON.stringify({ text: '{["'.repeat(500), list: Array(500).fill([{}]) }))).toBeNull()
  })
})

describe('a key that comes twice', () => {
  it.each([
    ['with equal values', '{"a":1,"a":1}'],
    ['in an object that is itself overwritten', '{"a":{"x":1,"x":2},"b":{}}'],
    ['around other objects', '{"a":{"a":{"a":1}},"b":1,"a":2}'],
    ['with quotes and backslashes in it', '{"\\"\\\\":1,"\\u0022\\u005c":2}'],
    ['empty', '{"":1,"":2}'],
    ['named like a number', '{"1":1,"\\u0031":2}'],
  ])('is found %s', (_, body) => {
    expect(reasonOf(body)).toBe('duplicate_keys')
  })

  it.each([
    ['in different objects', '{"a":{"a":1},"b":[{"a":1},{"a":2}]}'],
    ['in another letter case', '{"a":1,"A":2}'],
    ['only inside text', '{"a":"\\"a\\":1,\\"a\\":2","b":":::{}"}'],
    ['as a key and as a value', '{"a":"a","b":"a"}'],
  ])('is not seen in keys that are equal %s', (_, body) => {
    expect(reasonOf(body)).toBeNull()
  })

  it('is told from others that are written with escapes, whatever was parsed before', () => {
    const name = fc.constantFrom('"', '\\', ':', 'a', '__proto__')
    const value = fc.oneof(fc.integer(), fc.dictionary(name, fc.integer(), { noNullPrototype: true }))
    fc.assert(
      fc.property(fc.dictionary(name, value, { noNullPrototype: true }), (object) => {
        expect(parseJsonBody(Buffer.from(JSON.stringify(object)))).toEqual({ ok: true, object })
      }),
      { numRuns: 5_000 },
    )
  })

  it('is found wherever it is put in any JSON', () => {
    const key = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('__proto__', 'constructor', '"', '\\', ':'),
    )
    fc.assert(
      fc.property(
        fc.dictionary(key, fc.jsonValue({ maxDepth: 5 }), { noNullPrototype: true }),
        key,
        fc.jsonValue(),
        fc.nat({ max: 20 }),
        (object, twice, value, depth) => {
          const { [twice]: _, ...others } = object
          const members = Object.entries(others).map(
            ([name, one]) => `${JSON.stringify(name)}:${JSON.stringify(one)}`,
          )
          const once = [...members, `${JSON.stringify(twice)}:${JSON.stringify(value)}`]
          const wrap = (written: readonly string[]) =>
            nested(depth, '{"data":[', ']}').replace('1', () => `{${written}}`)
          const escaped = `"${twice.replace(/[\s\S]/g, unicodeEscape)}"`
          expect(reasonOf(wrap(once))).toBeNull()
          expect(reasonOf(wrap([`${escaped}:0`, ...once]))).toBe('duplicate_keys')
        },
      ),
    )
  })
})

function unicodeEscape(codeUnit: string): string {
  return `\\u${codeUnit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

it('a body of a megabyte is read, and searched for a key that comes twice', () => {
  const names = Array.from({ length: 90_000 }, (_, index) => `"k${index}":0`)
  expect(reasonOf(`{${names}}`)).toBeNull()
  expect(reasonOf(`{${names},"k1":0}`)).toBe('duplicate_keys')
  expect(reasonOf(`{"a":"${'\\"\\\\'.repeat(250_000)}"}`)).toBeNull()
  expect(reasonOf(`{"a":[${Array(300_000).fill('{}')}]}`)).toBeNull()
})
