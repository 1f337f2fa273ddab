/* Text from elsewhere, and text that readers type. */

import { DURATION_PATTERN, parseDuration } from '../../config/duration.js'

/** Controls, direction marks and what has no width: they would hide or reorder what is around them. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/gu

/** The same text with what one can't see as escapes, such as `\u202e`. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (mark) => {
    const code = (mark.codePointAt(0) ?? 0).toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })
}

/** Milliseconds of a duration as the commands take it, such as `3w`; null if it is none. */
export function durationIn(text: string): number | null {
  const plain = text.replaceAll(/\s/g, '').toLowerCase()
  return DURATION_PATTERN.test(plain) ? parseDuration(plain) : null
}

export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
