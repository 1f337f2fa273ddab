const DAY_MS = 86_400_000
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS, y: 365 * DAY_MS } as const

/**
 * `"90s"`, `"15m"`, `"72h"`, `"45d"`, `"3w"`, `"10y"`. Six digits, and three of years, keep every sum with a date within
 * the range of dates.
 */
export const DURATION_PATTERN = /^([1-9][0-9]{0,5}[smhdw]|[1-9][0-9]{0,2}y)$/

/** Milliseconds of a text that matches `DURATION_PATTERN`. */
export function parseDuration(text: string): number {
  const count = Number.parseInt(text, 10)
  return count * UNIT_MS[text.slice(-1) as keyof typeof UNIT_MS]
}
