/* Text from elsewhere, and text that readers type. */

/** Controls, direction marks and what has no width: they would hide or reorder what is around them. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/gu

/** The same text with what one can't see as escapes, such as `\u202e`. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (mark) => {
    const code = (mark.codePointAt(0) ?? 0).toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })
}

/** A cell of a CSV file: quoted, and no formula, whatever program opens it. */
export function csvCell(value: string | number | boolean | null): string {
  const text = value === null ? '' : String(value)
  const plain = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000, y: 31_536_000_000 } as const

/** Milliseconds of a duration as the commands take it, such as `3w`; null if it is none. */
export function durationIn(text: string): number | null {
  const [, count = '', unit = ''] = /^\s*(\d{1,6})\s*([smhdwy])\s*$/i.exec(text) ?? []
  const ms = UNITS[unit.toLowerCase() as keyof typeof UNITS]
  return ms === undefined || Number(count) === 0 ? null : Number(count) * ms
}
