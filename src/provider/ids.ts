import { isJsonObject } from './json.js'

/** The provider's own ids have some thirty characters; indexes on both databases support this many. */
export const MAX_ID_LENGTH = 255

/** Whether text can serve as an id. */
export function isUsableId(text: string): boolean {
  return text !== '' && isPlainText(text, MAX_ID_LENGTH)
}

/** The prefix of the ids of all changes by hand. */
export const MANUAL_ID_PREFIX = 'man_'
/** The prefix of the ids of events that have no usable id: the hash of the body follows. */
export const BODY_ID_PREFIX = 'sha256:'
/** The prefix of the ids of events that report what the provider's own record shows: 24 digits of a hash follow. */
export const REPORTED_ID_PREFIX = 'rec_'
const BEGINS_AS_OURS = new RegExp(`^(${[MANUAL_ID_PREFIX, BODY_ID_PREFIX, REPORTED_ID_PREFIX].join('|')})`)

/**
 * Whether text can serve as the id of an event from the provider. It never begins as the ids that Latchkey makes do, so
 * that no event takes the place of another. Any other prefix will do: prefixes are the provider's business.
 */
export function isProviderEventId(text: string): boolean {
  return isUsableId(text) && !BEGINS_AS_OURS.test(text)
}

/** Whether text is an id that Latchkey gives to what it read in a record of the provider. */
export function isReportedEventId(text: string): boolean {
  return REPORTED_ID.test(text)
}
const REPORTED_ID = new RegExp(`^${REPORTED_ID_PREFIX}[0-9a-f]{24}$`)

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
