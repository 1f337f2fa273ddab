import { MAX_TEXT_LENGTH } from './fields.js'
import { isJsonObject } from './json.js'
import { isPlainText } from './plain-text.js'

/**
 * The merchant's own metadata: text and numbers, as text. What can't be kept faithfully is left out,
 * which takes in integers beyond 2^53: JSON.parse has rounded them to somebody else's id.
 */
export function readMetadata(value: unknown): Readonly<Record<string, string>> {
  // No prototype: to merchants' data, `__proto__` is a name like any other.
  const metadata: Record<string, string> = Object.create(null)
  if (!isJsonObject(value)) return metadata
  for (const [key, entry] of Object.entries(value)) {
    const text = typeof entry === 'number' && isExact(entry) ? String(entry) : entry
    if (typeof text === 'string' && isPlainText(key, MAX_TEXT_LENGTH) && isPlainText(text, MAX_TEXT_LENGTH)) {
      metadata[key] = text
    }
  }
  return metadata
}

function isExact(number: number): boolean {
  return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))
}
