const ISO_8601 =
  /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,3})\d*)?)?(?:Z|([+-])(\d{2})(?::?(\d{2}))?)?$/i

/**
 * The instant that an ISO 8601 date and time names, in epoch milliseconds; null if it names none.
 *
 * Without an offset it is read as UTC, not as this machine's time. Second 60 is read as second 0 of the next minute;
 * digits beyond milliseconds are dropped.
 */
export function parseInstant(text: string): number | null {
  const match = ISO_8601.exec(text)
  if (match === null) return null
  const year = Number(match[1])
  const month = Number(match[2])
  const day = Number(match[3])
  const hour = Number(match[4])
  const minute = Number(match[5])
  const second = Number(match[6] ?? 0)
  const milliseconds = Number(match[7]?.padEnd(3, '0') ?? 0)
  if (!isCalendarDay(year, month, day) || hour > 23 || minute > 59 || second > 60) return null

  const instant = Date.UTC(year, month - 1, day, hour, minute, second, milliseconds)
  if (match[8] === undefined) return instant
  const offsetHours = Number(match[9])
  const offsetMinutes = Number(match[10] ?? 0)
  if (offsetHours > 23 || offsetMinutes > 59) return null
  const offset = (offsetHours * 60 + offsetMinutes) * 60_000
  return match[8] === '-' ? instant + offset : instant - offset
}

/** Date.UTC carries 30 February over to 2 March, month 13 into the next year, and years 0 to 99 into the 1900s. */
function isCalendarDay(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCFullYear() === year && date.getUTCDate() === day
}
