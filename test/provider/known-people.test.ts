import { describe, expect, it } from 'vitest'
import { fingerprintOf } from '../../src/provider/fingerprints.js'
import { createErasedPeople } from '../../src/provider/known-people.js'
import { asContact, asName } from '../../src/provider/person-words.js'

const KNOWN = [
  asContact('Ada@Example.com'),
  asContact('+44 20 7946 0123'),
  asContact('ada#1815'),
  asContact('987654321098765432'),
  asContact('776655'),
  asName('Ada Lovelace'),
]

const knownUnder = (key: string) => [
  { key, known: new Set(KNOWN.map((word) => fingerprintOf('the key', word))) },
]
const PEOPLE = createErasedPeople({ ids: new Set(), words: [], fingerprints: knownUnder('the key') })

describe('by a fingerprint', () => {
  it.each([
    ['an address', 'ada@example.com'],
    ['in any letter case', 'ADA@EXAMPLE.COM'],
    ['within a text', 'To: <ada@example.com>, soon'],
    ['in an address of the web', 'https://example.com/?to=ada%40example.com&x=1'],
    ['a phone number by its digits', 'call 442079460123.'],
    ['a phone number by itself', '+44 (20) 7946-0123'],
    ['a phone number in groups within a text', 'call +44 (20) 7946-0123, soon'],
    ['a phone number without a blank anywhere', 'tel:+44-20-7946-0123'],
    ['a phone number with 00 for +', '00442079460123'],
    ['a phone number with 00 for + within a text', 'tel_0044 20 7946 0123'],
    ['an account after a word', 'user_987654321098765432'],
    ['an account before a word', '987654321098765432_x'],
    ['an account between letters', 'id987654321098765432x'],
    ['an account of six digits', 'tg_776655'],
    ['a whole name', ' ada lovelace '],
  ])('is found %s', (_what, text) => {
    expect(PEOPLE.mentionsIn(text, false)).not.toEqual([])
  })

  it.each([
    ['a longer address', 'mada@example.com'],
    ['a longer host', 'ada@example.com.org'],
    ['a longer number', '4420794601234'],
    ['a longer number in groups', '+44 20 7946 0123 4'],
    ['a longer number among letters', 'id1987654321098765432x'],
    ['a number whose end is the same', '3044207946 0123'],
    ['a name among other words', 'for Ada Lovelace'],
    ['an account where no person is told of', 'ada#1815'],
    ['nothing', ''],
  ])('is not found %s', (_what, text) => {
    expect(PEOPLE.mentionsIn(text, false)).toEqual([])
  })

  it('is found an account of any form where a person is told of', () => {
    expect(PEOPLE.mentionsIn('Ada#1815', true)).toEqual([{ kind: 'contact', word: 'ada#1815' }])
  })

  it('is found nobody under another key', () => {
    const others = createErasedPeople({ ids: new Set(), words: [], fingerprints: knownUnder('another') })
    expect(others.mentionsIn('ada@example.com', true)).toEqual([])
  })
})
