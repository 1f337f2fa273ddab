const ISO_8601 =
  /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::(\d\d)(?:[.,](\d{1,3})\d*)?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?$/i

const ZERO = 0x30
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/**
 * Parses an ISO 8601 date and time into epoch milliseconds; null if it is not valid.
 *
 * Without an offset it is UTC, not the machine's time zone. Second 60 is read as second 0 of the next minute;
 * digits beyond milliseconds are dropped.
 */
export function parseInstant(text: string): number | null {
  const match = ISO_8601.exec(text)
  if (match === null) return null
  // Down to the minutes every position is fixed; capturing groups would take twice the time.
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  const hour = twoDigits(text, 11)
  const minute = twoDigits(text, 14)
  const second = Number(match[1] ?? 0)
  const milliseconds = Number(match[2]?.padEnd(3, '0') ?? 0)
  if (!isCalendarDay(year, month, day) || hour > 23 || minute > 59 || second > 60) return null

  const instant = Date.UTC(year, month - 1, day, hour, minute, second, milliseconds)
  const sign = match[3]
  if (sign === undefined) return instant
  const offsetHours = Number(match[4])
  const offsetMinutes = Number(match[5] ?? 0)
  if (offsetHours > 23 || offsetMinutes > 59) return null
  const offset = (offsetHours * 60 + offsetMinutes) * 60_000
  return sign === '-' ? instant + offset : instant - offset
}

/** ISO 8601 in UTC, with milliseconds. @param instant epoch milliseconds */
export function formatInstant(instant: number): string {
  return new Date(instant).toISOString()
}

function twoDigits(text: string, at: number): number {
  return (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO
}

/**
 * Date.UTC reads 30 February as 2 March, and years 0 to 99 as the 1900s. Checking the day of a Date would detect that,
 * but takes as long as everything else together.
 */
function isCalendarDay(year: number, month: number, day: number): boolean {
  const isLeapYear = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = month === 2 && isLeapYear ? 29 : (DAYS_IN_MONTH[month - 1] ?? 0)
  return year >= 100 && day >= 1 && day <= days
}
