import { MAX_TEXT_LENGTH } from './fields.js'
import { isJsonObject } from './json.js'
import { isPlainText } from './plain-text.js'

/** Far more than merchants attach; each is looked up by, so that thousands of them would hold up all else. */
const MAX_KEYS = 64

/**
 * The merchant's own metadata: text and numbers, as text, the first 64 of them. What can't be kept faithfully is left out,
 * which takes in integers beyond 2^53: JSON.parse has rounded them to somebody else's id.
 */
export function readMetadata(value: unknown): Readonly<Record<string, string>> {
  // No prototype: to merchants' data, `__proto__` is a name like any other.
  const metadata: Record<string, string> = Object.create(null)
  if (!isJsonObject(value)) return metadata
  let kept = 0
  for (const [key, entry] of Object.entries(value)) {
    if (kept === MAX_KEYS) break
    const text = isExactNumber(entry) ? String(entry) : entry
    if (typeof text === 'string' && isPlainText(key, MAX_TEXT_LENGTH) && isPlainText(text, MAX_TEXT_LENGTH)) {
      metadata[key] = text
      kept += 1
    }
  }
  return metadata
}

function isExactNumber(value: unknown): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
}
