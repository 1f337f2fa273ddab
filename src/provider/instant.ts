const ISO_8601 =
  /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?(?:Z|([+-])(\d{2})(?::?(\d{2}))?)?$/i

/**
 * The instant that an ISO 8601 date and time names, in epoch milliseconds; null if it names none.
 *
 * Without an offset it is read as UTC, not as this machine's time. A leap second is the second after it,
 * and what is finer than a millisecond is cut off.
 */
export function parseInstant(text: string): number | null {
  const match = ISO_8601.exec(text)
  if (match === null) return null
  const field = (group: number) => Number(match[group] ?? 0)

  const [year, month, day] = [field(1), field(2), field(3)]
  if (!isCalendarDay(year, month, day)) return null
  const [hour, minute, second] = [field(4), field(5), field(6)]
  if (hour > 23 || minute > 59 || second > 60) return null
  const [offsetHours, offsetMinutes] = [field(9), field(10)]
  if (offsetHours > 23 || offsetMinutes > 59) return null

  const milliseconds = Number((match[7] ?? '').slice(0, 3).padEnd(3, '0'))
  const offset = (offsetHours * 60 + offsetMinutes) * (match[8] === '-' ? -60_000 : 60_000)
  return Date.UTC(year, month - 1, day, hour, minute, second, milliseconds) - offset
}

/** Date.UTC carries 30 February over to 2 March, month 13 into the next year, and years 0 to 99 into the 1900s. */
function isCalendarDay(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCFullYear() === year && date.getUTCDate() === day
}
