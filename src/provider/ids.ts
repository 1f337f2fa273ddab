import { isJsonObject } from './json.js'
import { isPlainText } from './plain-text.js'

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
