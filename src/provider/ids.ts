import { isJsonObject } from './json.js'

/** The provider's own ids have some thirty characters; indexes on both databases take this many. */
export const MAX_ID_LENGTH = 255

/** Whether text can serve as an id. Prefixes are the provider's affair: any other text will do. */
export function isUsableId(text: string): boolean {
  return text !== '' && isPlainText(text, MAX_ID_LENGTH)
}

/**
 * The id that a field shows, written as text or as an object with `id`; null where it shows none.
 * An id is passed on as it stands, usable or not: leaving a bad one out would change what the event is about.
 */
export function shownId(value: unknown): string | null {
  const id = isJsonObject(value) ? value.id : value
  return typeof id === 'string' && id !== '' ? id : null
}

/** C0, DEL and C1 control characters, and surrogates without their other half: not every store or log takes them. */
const UNSTORABLE = /[\p{Cc}\p{Cs}]/u

/** Whether text of at most `maxLength` UTF-16 units passes unchanged through every store, header and log line. */
export function isPlainText(text: string, maxLength: number): boolean {
  return text.length <= maxLength && !UNSTORABLE.test(text)
}
