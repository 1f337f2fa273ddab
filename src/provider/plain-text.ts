/** C0, DEL and C1 control characters, and surrogates without their other half: not every store or log takes them. */
const UNSTORABLE = /[\p{Cc}\p{Cs}]/u

/** Whether text of at most `maxLength` UTF-16 units passes unchanged through every store, header and log line. */
export function isPlainText(text: string, maxLength: number): boolean {
  return text.length <= maxLength && !UNSTORABLE.test(text)
}
