import type { PersonWord } from './fingerprints.js'
import { digitsOf, mayHoldNumber, numbersIn } from './numbers.js'

/** The longest address that mail is sent to has 254 characters, of which 64 before the `@`. */
const BEFORE_AT = /[^\s"'<>()[\]{},;:\\/|?&=#@]{1,64}$/u
const AFTER_AT = /^[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/u
const LONGEST_BEFORE = 64
const LONGEST_AFTER = 254

const PHONE = /^\+?[\d\s().-]{7,30}$/
const LONGEST_NAME = 100
/** Without any of these there is no address or name, escaped or not; most texts are without. */
const MAY_TELL = /[@ %\\]/

/** A quick look, which says no only where there is no such word. */
export function mayHoldPersonWords(text: string, isPersonField: boolean): boolean {
  return isPersonField || MAY_TELL.test(text) || PHONE.test(text.trim()) || mayHoldNumber(text)
}

/** All within a text by which a person might be known, each once: in time that grows with its length alone. */
export function personWordsIn(text: string, isPersonField: boolean): readonly PersonWord[] {
  const whole = text.trim()
  const contacts = [...addressesIn(text), ...numbersIn(text)]
  const names: string[] = []
  if (whole.length <= LONGEST_NAME) {
    if (isPersonField || PHONE.test(whole)) contacts.push(whole)
    if (isPersonField || whole.includes(' ')) names.push(whole)
  }
  return [...[...new Set(contacts)].map(asContact), ...names.map(asName)]
}

/** However it is written: in lower case, and a phone number by its digits. */
export function asContact(text: string): PersonWord {
  const word = text.trim().toLowerCase()
  return { kind: 'contact', word: PHONE.test(word) ? digitsOf(word) : word }
}

export function asName(text: string): PersonWord {
  return { kind: 'name', word: text.trim().toLowerCase() }
}

function addressesIn(text: string): string[] {
  const found: string[] = []
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    const before = BEFORE_AT.exec(text.slice(Math.max(0, at - LONGEST_BEFORE), at))
    const after = before && AFTER_AT.exec(text.slice(at + 1, at + 1 + LONGEST_AFTER))
    if (before && after) found.push(`${before[0]}@${after[0]}`)
  }
  return found
}
