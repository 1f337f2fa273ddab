import { z } from 'zod'

/*
 * Times of a schedule, checked without the library that keeps them: loading it for a check would slow every command.
 * Each expression that passes is one that the library takes (`test/config/cron.test.ts`).
 */

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
const WEEKDAYS = 'sun mon tue wed thu fri sat'.split(' ')

interface Field {
  readonly name: string
  readonly least: number
  readonly most: number
  readonly names?: readonly string[]
}

const FIELDS: readonly Field[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of the month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12, names: MONTHS },
  { name: 'day of the week', least: 0, most: 7, names: WEEKDAYS },
]
const EXAMPLE = 'such as "15 4 * * *"'
const PART = /^(?:\*|([a-z]{3}|\d{1,2})(?:-([a-z]{3}|\d{1,2}))?)(?:\/([1-9]\d?))?$/

/** The values of one field; null: it is not valid. */
function valuesOf(text: string, { least, most, names = [] }: Field): readonly number[] | null {
  const numberOf = (word: string): number =>
    /\d/.test(word) ? Number(word) : names.includes(word) ? names.indexOf(word) + least : Number.NaN
  const values: number[] = []
  for (const part of text.toLowerCase().split(',')) {
    const match = PART.exec(part)
    if (match === null) return null
    const [, first, last = first, step] = match
    // A step needs a range: `*/5` or `10-50/5`.
    if (step !== undefined && first !== undefined && match[2] === undefined) return null
    const from = first === undefined ? least : numberOf(first)
    const to = last === undefined ? most : numberOf(last)
    if (!(from >= least && from <= to && to <= most)) return null
    for (let value = from; value <= to; value += Number(step ?? 1)) values.push(value)
  }
  return values
}

const LONGEST_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** What is wrong with an expression; null: nothing. */
function problemOf(expression: string): string | null {
  const texts = expression.split(/ +/)
  if (texts.length !== FIELDS.length)
    return `must have five fields: minute, hour, day of the month, month and day of the week, ${EXAMPLE}`
  const fields = FIELDS.map((field, index) => valuesOf(texts[index] ?? '', field))
  const wrong = FIELDS.find((_, index) => fields[index] === null)
  if (wrong !== undefined)
    return `has ${wrong.name === 'hour' ? 'an' : 'a'} ${wrong.name} that is not valid: it takes "*", ${wrong.least} to ${wrong.most}, ranges, lists and steps, ${EXAMPLE}`
  const [, , days = [], months = []] = fields
  if (!months?.some((month) => days?.some((day) => day <= (LONGEST_MONTHS[month - 1] ?? 0))))
    return 'is never due: none of its months has such a day'
  return null
}

/** The times of a schedule in five fields, as cron has them. */
export const cronSchema = z
  .string()
  .regex(/\S/, { error: 'is empty', abort: true })
  .check(({ value, issues }) => {
    const message = problemOf(value)
    if (message !== null) issues.push({ code: 'custom', message, input: value })
  })

/** The time zone of a schedule, by its name. */
export const timezoneSchema = z
  .string()
  .refine(isTimezone, 'must be a time zone, such as "UTC" or "Europe/Berlin"')

function isTimezone(name: string): boolean {
  if (name === 'UTC') return true
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
