import { isJsonObject } from './json.js'

/** The provider's own ids have some thirty characters; indexes on both databases support this many. */
export const MAX_ID_LENGTH = 255

/** Whether text can serve as an id. Any prefix will do: prefixes are the provider's business. */
export function isUsableId(text: string): boolean {
  return text !== '' && isPlainText(text, MAX_ID_LENGTH)
}

/**
 * The id in a field, written as text or as an object with `id`; null if there is none. An id is passed on unchanged,
 * usable or not: dropping a bad one would change what the event is about.
 */
export function shownId(value: unknown): string | null {
  const id = isJsonObject(value) ? value.id : value
  return typeof id === 'string' && id !== '' ? id : null
}

/** C0, DEL and C1 control characters, and unpaired surrogates: some stores and logs reject them. */
const UNSTORABLE = /[\p{Cc}\p{Cs}]/u

/** Whether text of at most `maxLength` UTF-16 units passes unchanged through every store, header and log line. */
export function isPlainText(text: string, maxLength: number): boolean {
  return text.length <= maxLength && !UNSTORABLE.test(text)
}
