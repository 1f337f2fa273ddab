/** Around what is looked for none of these may stand, or it is part of something longer: `cus_1` is not in `cus_12`. */
const BEFORE = /[\p{L}\p{N}_.+-]$/u
const AFTER = /^[\p{L}\p{N}_-]/u

/**
 * Whether a text holds any of these words, in any letter case.
 * @param words in lower case
 */
export function mentions(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase()
  return words.some((word) => {
    for (let at = lower.indexOf(word); at !== -1; at = lower.indexOf(word, at + 1)) {
      const before = lower.slice(Math.max(0, at - 2), at)
      const after = lower.slice(at + word.length, at + word.length + 2)
      if (!BEFORE.test(before) && !AFTER.test(after)) return true
    }
    return false
  })
}
