import { createHash } from 'node:crypto'

/** As many UTF-16 units as a search may begin with. */
const MAX_UNITS = 255

/**
 * A value by which customers are found, as their lookups hold it: a long one by its beginning and a hash. PostgreSQL keeps
 * no more than 2,704 bytes in a row of an index, and 1,000 units may have 3,000.
 */
export function storedLookup(value: string): string {
  if (value.length <= MAX_UNITS) return value
  // Half a character can't be stored.
  const endsInside = /[\uD800-\uDBFF]$/.test(value.slice(0, MAX_UNITS))
  const beginning = value.slice(0, endsInside ? MAX_UNITS - 1 : MAX_UNITS)
  return `${beginning}…${createHash('sha256').update(value).digest('hex')}`
}
