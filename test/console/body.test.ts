import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hexOf, indented, textIn } from '../../src/console/pages/events/body.js'

describe('a body', () => {
  it.each([
    ['{"a":1.0e+2,"a":10000000000000000001}', '{\n  "a": 1.0e+2,\n  "a": 10000000000000000001\n}'],
    ['{"2":[],"1":{ },"a\\u0062":"{,}:\\""}', '{\n  "2": [],\n  "1": {},\n  "a\\u0062": "{,}:\\""\n}'],
    [' [ true , null ] ', '[\n  true,\n  null\n]'],
    ['"x"', '"x"'],
  ])('%j is indented, and its tokens stay', (text, shown) => {
    expect(indented(text)).toBe(shown)
  })

  it.each(['{"a":1', 'a=1&b=2', '', '{"a":\u00a01}'])('%j is no JSON, and stays as it is', (text) => {
    expect(indented(text)).toBe(text)
  })

  it('means the same indented, whatever it says', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.parse(indented(text))).toEqual(JSON.parse(text))
        expect(indented(indented(text))).toBe(indented(text))
      }),
    )
  })

  it('keeps its byte order mark as text, and is no text where it is not UTF-8', () => {
    expect(textIn(new Uint8Array([0xef, 0xbb, 0xbf, 0x41]))).toBe('\ufeffA')
    expect(textIn(new Uint8Array([0x41, 0xff]))).toBeNull()
    expect(hexOf(new Uint8Array([0x41, 0xff, 0x0a]))).toBe(`00000000  41 ff 0a${' '.repeat(41)}A..`)
    expect(hexOf(new Uint8Array(5_000)).split('\n').at(-1)).toBe('and 904 bytes more')
  })
})
