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

describe('a body', () => {
  it('is read when it is one JSON object', () => {
    expect(parseJsonBody(Buffer.from('{"id":"evt_1","data":{"n":[1,{"id":2}]}}'))).toEqual({
      ok: true,
      object: { id: 'evt_1', data: { n: [1, { id: 2 }] } },
    })
  })

  it.each([
    ['empty', ''],
    ['blank', ' '],
    ['cut off', '{"a":1'],
    ['followed by more', '{}{}'],
    ['a comment', '{}//'],
    ['preceded by a byte order mark', '\ufeff{}'],
    ['with a raw NUL in text', '{"a":"\u0000"}'],
  ])('is not JSON when it is %s', (_, body) => {
    expect(reasonOf(body)).toBe('not_json')
  })

  it.each(['null', 'true', '1', '"text"', '[]', '[{"id":"evt_1"}]'])('is no object when it is %s', (body) => {
    expect(reasonOf(body)).toBe('not_an_object')
  })

  it.each([
    ['a stray byte', [0x7b, 0xff, 0x7d]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a cut-off sequence', [0x22, 0xe2, 0x82]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00]],
  ])('is not UTF-8 with %s', (_, bytes) => {
    expect(reasonOf(Uint8Array.from(bytes))).toBe('not_utf8')
  })
})

describe('nesting', () => {
  it.each([
    ['objects', '{"a":', '}'],
    ['arrays in an object', '{"a":[', ']}'],
  ])('is bounded for %s', (_, open, close) => {
    const levels = open.includes('[') ? 2 : 1
    expect(reasonOf(nested(MAX_NESTING / levels, open, close))).toBeNull()
    expect(reasonOf(nested(MAX_NESTING / levels + 1, open, close))).toBe('nested_too_deep')
  })

  it('is bounded after any number of other values', () => {
    const others = '0,'.repeat(500)
    expect(reasonOf(`{"a":[${others}${nested(MAX_NESTING - 2, '[', ']')}]}`)).toBeNull()
    expect(reasonOf(`{"a":[${others}${nested(MAX_NESTING - 1, '[', ']')}]}`)).toBe('nested_too_deep')
  })

  it('of 200,000 levels is refused without overflowing', () => {
    expect(reasonOf(`{"a":${nested(200_000, '[', ']')}}`)).toBe('nested_too_deep')
    expect(reasonOf(nested(200_000))).toBe('nested_too_deep')
    expect(reasonOf(nested(200_000, '[', ']'))).toBe('nested_too_deep')
  })

  it('counts no brackets in text, and none that lie side by side', () => {
    expect(reasonOf(JSON.stringify({ text: '{["'.repeat(500), list: Array(500).fill([{}]) }))).toBeNull()
  })
})

describe('a key that comes twice', () => {
  it.each([
    ['at the top', '{"id":"evt_1","id":"evt_2"}'],
    ['with equal values', '{"a":1,"a":1}'],
    ['far inside', '{"a":[0,{"b":[{"c":1,"d":2,"c":3}]}]}'],
    ['in an object that is itself overwritten', '{"a":{"x":1,"x":2},"b":{}}'],
    ['around other objects', '{"a":{"a":{"a":1}},"b":1,"a":2}'],
    ['once written with an escape', '{"a":1,"\\u0061":2}'],
    ['with quotes and backslashes in it', '{"\\"\\\\":1,"\\u0022\\u005c":2}'],
    ['empty', '{"":1,"":2}'],
    ['named __proto__', '{"__proto__":1,"__proto__":2}'],
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

describe('a body of a megabyte', () => {
  const names = Array.from({ length: 90_000 }, (_, index) => `"k${index}":0`)

  it('full of keys is read, and searched for one that comes twice', () => {
    expect(reasonOf(`{${names}}`)).toBeNull()
    expect(reasonOf(`{${names},"k1":0}`)).toBe('duplicate_keys')
  })

  it('full of quotes and backslashes is read', () => {
    expect(reasonOf(`{"a":"${'\\"\\\\'.repeat(250_000)}"}`)).toBeNull()
  })

  it('full of empty objects is read', () => {
    expect(reasonOf(`{"a":[${Array(300_000).fill('{}')}]}`)).toBeNull()
  })
})

describe('keys with a meaning to JavaScript', () => {
  it('are data and reach no prototype', () => {
    const parsed = parseJsonBody(
      Buffer.from('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'),
    )
    expect(parsed).toMatchObject({ ok: true })
    expect(parsed.ok && Object.keys(parsed.object)).toEqual(['__proto__', 'constructor'])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })
})
