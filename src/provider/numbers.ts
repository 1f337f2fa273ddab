/** Fewer, with something between them, are a date. */
const FEWEST_IN_GROUPS = 9

/** Groups of digits as a phone number is written in, on one line and however many. */
const GROUPS = /\d+(?:[ \u00a0().-]{1,2}\d+)*/g
const MAY_HOLD = /\d{6}|(?:\d[ \u00a0().-]{0,2}){9}/
const BETWEEN_GROUPS = /\D+/
const ACCESS_CODE = /^00(?=[1-9]\d{8})/
/** Fewer digits are a year, a price or a time; more are no account's. */
const IS_NUMBER = /^\d{6,20}$/

/** Whether a word is digits alone, and as many as an account or a phone number has. */
export function isNumber(word: string): boolean {
  return IS_NUMBER.test(word)
}

/** The digits of a phone number, which are the same however it is written: what `+` stands for may be `00`. */
export function digitsOf(phone: string): string {
  return phone.replace(/\D/g, '').replace(ACCESS_CODE, '')
}

/** A quick look, which says no only where there is none; most texts have not as many digits. */
export function mayHoldNumber(text: string): boolean {
  return MAY_HOLD.test(text)
}

/**
 * All numbers within a text by which a person might be known, as digits. They end where digits end, whatever letter
 * or sign stands there: `7766554433` is in `tg_7766554433x` and is not in `17766554433`. Linear in the text's length.
 */
export function numbersIn(text: string): readonly string[] {
  if (!mayHoldNumber(text)) return []
  return [...text.matchAll(GROUPS)].flatMap(([written]) => {
    const groups = written.split(BETWEEN_GROUPS)
    const numbers = groups.filter(isNumber)
    const digits = groups.length > 1 ? groups.join('') : ''
    if (digits.length >= FEWEST_IN_GROUPS && isNumber(digits)) numbers.push(digits)
    return numbers.map(digitsOf)
  })
}
