import fc from 'fast-check'
import { validate } from 'node-cron'
import { describe, expect, it } from 'vitest'
import { cronSchema, timezoneSchema } from '../../src/config/cron.js'

const isValid = (expression: string): boolean => cronSchema.safeParse(expression).success

/** Parts of fields, most of which are valid in one field and in no other. */
const NAMES = ['jan', 'DEC', 'feb', 'sun', 'Sat', 'mon', 'l', 'w', 'january']
const value = fc.oneof(fc.integer({ min: 0, max: 61 }).map(String), fc.constantFrom(...NAMES, '00', '07'))
const part = fc.oneof(
  fc.constant('*'),
  value,
  fc.tuple(value, value).map(([from, to]) => `${from}-${to}`),
  fc
    .tuple(fc.constantFrom('*', '1-5', '5', '0-7'), fc.integer({ min: 0, max: 70 }))
    .map(([of, step]) => `${of}/${step}`),
)
const field = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(','))
const common = fc.constantFrom('*', '1', '1-5', '*/2')
const expression = fc
  .array(fc.oneof({ weight: 3, arbitrary: common }, field), { minLength: 5, maxLength: 5 })
  .map((fields) => fields.join(' '))

describe('a schedule in a config', () => {
  it('is one that the library takes, whenever it is valid', () => {
    let valid = 0
    fc.assert(
      fc.property(fc.oneof(expression, fc.string()), (text) => {
        if (!isValid(text)) return
        valid += 1
        expect([text, validate(text)]).toEqual([text, true])
      }),
      { numRuns: 2_000 },
    )
    expect(valid).toBeGreaterThan(200)
  })

  it.each([
    ...['15 4 * * *', '*/5 * * * *', '0,30 8-18 * * mon-fri', '0 0 29 2 *', '00 03 01 01 *', '0  3  *  *  *'],
    ...['0 3 31 jan,MAR 7', '10-50/20 */6 1-7 */3 0-7'],
  ])('may be %s', (text) => {
    expect([isValid(text), validate(text)]).toEqual([true, true])
  })
})

it.each(['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu'])('a time zone may be %s', (name) => {
  expect(timezoneSchema.safeParse(name).success).toBe(true)
})
