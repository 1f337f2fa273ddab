import { expect, it } from 'vitest'
import { bytesText, counted, durationText } from '../../src/doctor/finding.js'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR

it.each([
  [0, '0s'],
  [999, '0s'],
  [90 * SECOND, '1m 30s'],
  [HOUR, '1h'],
  [HOUR + 59 * SECOND, '1h'],
  [3 * DAY + 4 * HOUR + 5 * SECOND, '3d 4h'],
])('%d ms are told as %s', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})

it.each([
  [0, '0 B'],
  [0.5, '1 B'],
  [1023, '1023 B'],
  [1024, '1.0 kB'],
  [1.5 * 1024 ** 3, '1.5 GB'],
  [300 * 1024 ** 2, '300 MB'],
  [5_000 * 1024 ** 4, '5000 TB'],
])('%d bytes are told as %s', (bytes, text) => {
  expect(bytesText(bytes)).toBe(text)
})

it('one is told as one', () => {
  expect([0, 1, 2].map((count) => counted(count, 'check'))).toEqual(['0 checks', '1 check', '2 checks'])
})
