import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rewriteJson } from '../../src/config/rewrite-json.js'
import { laidOut, SPACES } from './laid-out.js'

const json = fc
  .jsonValue({ noUnicodeString: false })
  .filter((value) => !JSON.stringify(value).includes('__proto__'))

describe('rewriting JSON text', () => {
  it('gives text that holds the new value, however the old text was laid out', () => {
    const property = fc.property(json, json, SPACES, (before, after, spaces) => {
      const text = laidOut(before, spaces)
      expect(JSON.parse(rewriteJson(text, JSON.parse(JSON.stringify(after))))).toEqual(
        JSON.parse(JSON.stringify(after)),
      )
    })
    fc.assert(property, { numRuns: 1_000 })
  })

  it('changes no byte where the value is the same', () => {
    const property = fc.property(json, SPACES, (value, spaces) => {
      const text = laidOut(value, spaces)
      expect(rewriteJson(text, JSON.parse(text))).toBe(text)
    })
    fc.assert(property)
  })

  it.each([
    [
      'the last of a list without white space',
      '{"a":[{"b":1},{"c":2}]}',
      { a: [{ b: 1 }] },
      '{"a":[{"b":1}]}',
    ],
    ['the last of a list of short elements', '[1,2]', [1], '[1]'],
    ['the first', '[ 1, 2 ]', [2], '[ 2 ]'],
    ['one in the middle', '[\n 1,\n 2,\n 3\n]', [1, 3], '[\n 1,\n 3\n]'],
    [
      'the last with a hanging indent',
      '{"a": [{"b": 1},\n      {"c": 2}]}',
      { a: [{ b: 1 }] },
      '{"a": [{"b": 1}]}',
    ],
    ['the last after a comma that begins its line', '[ 1\n, 2\n]', [1], '[ 1\n]'],
    ['the only one', '[\n  1\n]', [], '[]'],
    ['a member before another', '{ "a": 1, "b": 2 }', { b: 2 }, '{ "b": 2 }'],
    ['a member whose name looks like a number', '{"b": 1, "7": 2}', { 7: 2 }, '{"7": 2}'],
  ])('removes %s and nothing else', (_, text, value, expected) => {
    expect(rewriteJson(text, value)).toBe(expected)
  })

  it.each([
    ['in one line', '{"a": [{"b": 1}]}', { a: [{ b: 1 }, { c: 2 }] }, '{"a": [{"b": 1},{"c":2}]}'],
    [
      'on lines of its own with tabs and CRLF',
      '{\r\n\t"a": [\r\n\t\t1\r\n\t]\r\n}',
      { a: [1, { b: 2 }] },
      '{\r\n\t"a": [\r\n\t\t1,\r\n\t\t{\r\n\t\t\t"b": 2\r\n\t\t}\r\n\t]\r\n}',
    ],
    ['in an empty object', '{\n  "a": {}\n}\n', { a: { b: 1 } }, '{\n  "a": {\n    "b": 1\n  }\n}\n'],
    ['beside a member', '{\n  "a": 1\n}', { a: 1, b: [2] }, '{\n  "a": 1,\n  "b": [\n    2\n  ]\n}'],
  ])('adds a part %s as its neighbours are laid out', (_, text, value, expected) => {
    expect(rewriteJson(text, value)).toBe(expected)
  })
})
