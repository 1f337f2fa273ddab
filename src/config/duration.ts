const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** `"90s"`, `"15m"`, `"72h"`, `"45d"`, `"3w"`. Six digits keep every sum with a date within the range of dates. */
export const DURATION_PATTERN = /^([1-9][0-9]{0,5})([smhdw])$/

/** Milliseconds of a text that matches `DURATION_PATTERN`. */
export function parseDuration(text: string): number {
  const count = Number.parseInt(text, 10)
  return count * UNIT_MS[text.slice(-1) as keyof typeof UNIT_MS]
}
