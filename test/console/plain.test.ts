import { describe, expect, it } from 'vitest'
import { csvCell, durationIn, visible } from '../../src/console/shared/plain.js'

describe('text from elsewhere', () => {
  it.each([
    ['Ada Lovelace, Ωμέγα 名前 🔑', 'Ada Lovelace, Ωμέγα 名前 🔑'],
    ['\u202Egpj.exe', '\\u202egpj.exe'],
    ['a\u0000b\nc\u200bd', 'a\\u0000b\\u000ac\\u200bd'],
    ['\u{e0041}', '\\u{e0041}'],
    ['<script>', '<script>'],
  ])('%j is shown as %j', (text, shown) => {
    expect(visible(text)).toBe(shown)
  })

  it.each([
    ['=1+1', "'=1+1"],
    ['+4', "'+4"],
    ['-4', "'-4"],
    ['@a', "'@a"],
    ['\t=1', "'\t=1"],
    ['a,"b"\n', '"a,""b""\n"'],
    ['=a,b', '"\'=a,b"'],
    [-4, '-4'],
    [null, ''],
    [true, 'true'],
  ])('%j in a CSV file is %j', (value, cell) => {
    expect(csvCell(value)).toBe(cell)
  })
})

describe('a duration', () => {
  it.each([
    ['3w', 1_814_400_000],
    [' 90 S ', 90_000],
    ['1y', 31_536_000_000],
    ['0d', null],
    ['3', null],
    ['1.5h', null],
    ['w', null],
    ['1000000s', null],
    ['3 weeks', null],
  ])('%j is %j ms', (text, ms) => {
    expect(durationIn(text)).toBe(ms)
  })
})
