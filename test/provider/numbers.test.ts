import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { digitsOf, mayHoldNumber, numbersIn } from '../../src/provider/numbers.js'

describe('the numbers in a text', () => {
  it.each([
    ['tg_7766554433x', ['7766554433']],
    ['123456 or 12345', ['123456']],
    ['on +49 (157) 555-12345, at 17:50', ['4915755512345']],
    ['tel_0049 157 55512345', ['55512345', '4915755512345']],
    ['from 2026-11-21 on', []],
    ['+49 30 1234567\n+49 30 7654321', ['1234567', '49301234567', '7654321', '49307654321']],
    ['123456789012345678901', []],
    ['', []],
  ])('%j: %j', (text, numbers) => {
    expect(numbersIn(text)).toEqual(numbers)
  })

  it('are found however their digits are grouped, and whatever but a digit is around them', () => {
    const groups = fc.array(fc.stringMatching(/^[1-9]{3,5}$/), { minLength: 3, maxLength: 4 })
    const between = fc.constantFrom('', ' ', '-', '.', ') ', ' (', '\u00a0')
    const around = fc.constantFrom('', '_', 'x', '+', '=', '"', ':', 'é')
    fc.assert(
      fc.property(groups, between, around, around, (parts, sign, before, after) => {
        const text = before + parts.join(sign) + after
        const digits = parts.join('')
        expect(mayHoldNumber(text)).toBe(true)
        expect(numbersIn(text)).toContain(digits)
        expect(numbersIn(`1${text.slice(before.length)}`)).not.toContain(digits)
      }),
    )
  })
})

describe('the digits of a phone number', () => {
  it.each([
    ['+49 157 555 12345', '4915755512345'],
    ['0049 157 555 12345', '4915755512345'],
    ['0157 555 12345', '015755512345'],
    ['0012345', '0012345'],
  ])('%s: %s', (phone, digits) => {
    expect(digitsOf(phone)).toBe(digits)
  })
})
