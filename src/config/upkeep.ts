import { z } from 'zod'
import type { Problem } from '../handlers/problem.js'
import { cronSchema, timezoneSchema } from './cron.js'
import { durationSchema } from './fields.js'
import type { Usable } from './problems.js'

const SHORTEST_MS = 60_000

/** A payment can be disputed for weeks, and its original events may be needed until then. */
const SHORT_RETENTION_MS = 35 * 86_400_000

const DEFAULT_EVERY_MS = 86_400_000

export const backupSchema = z
  .strictObject({
    folder: z.string().regex(/\S/, 'is empty').describe('The folder for backups, and for nothing else.'),
    every: durationSchema('must be a duration such as "24h"')
      .refine((every) => every >= SHORTEST_MS, 'must be at least 1m')
      .describe('How old the newest backup may get before another is made; by default 24h.')
      .optional(),
    schedule: cronSchema.describe('When backups are made, in the place of `every`.').optional(),
    timezone: timezoneSchema.describe('The time zone of `schedule`; by default UTC.').optional(),
    keep: z.int().min(1).max(10_000).default(7).describe('How many backups are kept.'),
  })
  .transform(({ folder, every = DEFAULT_EVERY_MS, schedule, timezone = 'UTC', keep }) =>
    schedule === undefined ? { folder, everyMs: every, keep } : { folder, schedule, timezone, keep },
  )

/** Backups are made by age or at times, not both. */
export function findScheduledTwice({
  every,
  schedule,
  timezone,
}: Usable<z.input<typeof backupSchema>>): Problem[] {
  if (schedule === undefined) {
    if (timezone === undefined) return []
    return [
      { path: ['backup', 'timezone'], message: 'is the time zone of backup.schedule, which is not set' },
    ]
  }
  if (every === undefined) return []
  return [{ path: ['backup', 'schedule'], message: 'is set, and backup.every is, too: keep one of them' }]
}

/** For a database that is PostgreSQL. */
export function warnOfBackup(backup: z.output<typeof backupSchema> | null): Problem[] {
  if (backup === null) return []
  return [{ path: ['backup'], message: 'is not used with PostgreSQL: back it up with its own tools' }]
}

export const retentionSchema = z
  .strictObject({
    bodiesAfter: durationSchema('must be a duration, such as "180d"').describe(
      'How long the exact bytes of an event are kept; the event as read from them stays.',
    ),
  })
  .transform(({ bodiesAfter }) => ({ bodiesAfterMs: bodiesAfter }))

export const erasureSchema = z.strictObject({
  onCustomerDeleted: z
    .boolean()
    .default(false)
    .describe(
      'Whether customers whom the payments service reports as deleted are erased here too, including earlier ones: within a minute, 100 at a time, and for good.',
    ),
})

export function warnOfRetention(retention: z.output<typeof retentionSchema> | null): Problem[] {
  if (retention === null || retention.bodiesAfterMs >= SHORT_RETENTION_MS) return []
  const message = 'is under 35 days: after that, events cannot be read again or exported'
  return [{ path: ['retention', 'bodiesAfter'], message }]
}
