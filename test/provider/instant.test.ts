import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseInstant } from '../../src/provider/instant.js'

describe('an instant', () => {
  it.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00:00.5Z', '2026-03-01T12:00:00.500Z'],
    ['2026-03-01T12:00:00.123456789Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00,999999Z', '2026-03-01T12:00:00.999Z'],
    ['2026-03-01T12:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T14:00:00+02:00', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T06:30:00-0530', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T13:00:00+01', '2026-03-01T12:00:00.000Z'],
    ['2026-02-28T23:30:00-01:00', '2026-03-01T00:30:00.000Z'],
    ['2026-03-02T11:59:00+23:59', '2026-03-01T12:00:00.000Z'],
    // Without an offset it is UTC, wherever the machine is.
    ['2026-07-01 12:00:00.250', '2026-07-01T12:00:00.250Z'],
    ['2026-03-01t12:00:00z', '2026-03-01T12:00:00.000Z'],
    ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
    // A leap second is the second after it.
    ['2016-12-31T23:59:60.75Z', '2017-01-01T00:00:00.750Z'],
    ['2017-01-01T00:59:60+01:00', '2017-01-01T00:00:00.000Z'],
  ])('is read from %s', (text, instant) => {
    expect(parseInstant(text)).toBe(Date.parse(instant))
  })

  it.each([
    ...['', 'yesterday', '1772366400', '2026-03-01', '2026-3-1T12:00:00Z', '26-03-01T12:00:00Z'],
    ...['20260301T120000Z', '0050-03-01T12:00:00Z', '2026-03-01T24:00:00Z', '2026-03-01T12:60:00Z'],
    ...['2026-03-01T12:00:61Z', '2026-03-01T12:00:00.Z', '2026-03-01T12:00:00+24:00'],
    ...['2026-03-01T12:00:00+01:60', '2026-03-01T12:00:00+01:', '2026-03-01T12:00:00 UTC'],
    ...['2026-02-29T12:00:00Z', '2100-02-29T12:00:00Z', '2200-02-29T12:00:00Z'],
    ...[' 2026-03-01T12:00:00Z', '2026-03-01T12:00:00Z\n', '+002026-03-01T12:00:00Z'],
  ])('is not read from %j', (text) => {
    expect(parseInstant(text)).toBeNull()
  })

  it('survives being written and read, whatever it is', () => {
    const dates = fc.date({
      min: new Date('0100-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    })
    fc.assert(
      fc.property(dates, (date) => {
        expect(parseInstant(date.toISOString())).toBe(date.getTime())
      }),
    )
  })

  it('is on a day of the calendar, in leap years too', () => {
    const years = fc.oneof(fc.constantFrom(100, 1900, 2000, 2024, 2100), fc.integer({ min: 100, max: 9999 }))
    fc.assert(
      fc.property(years, fc.nat({ max: 14 }), fc.nat({ max: 33 }), (year, month, day) => {
        const [y, m, d] = [year, month, day].map(String) as [string, string, string]
        const date = `${y.padStart(4, '0')}-${m.padStart(2, '0')}-${d.padStart(2, '0')}T00:00:00.000Z`
        const at = new Date(Date.UTC(year, month - 1, day))
        expect(parseInstant(date)).toBe(at.toISOString() === date ? at.getTime() : null)
      }),
      { numRuns: 1000 },
    )
  })
})
