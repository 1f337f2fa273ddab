import { z } from 'zod'
import type { Problem } from '../handlers/problem.js'
import { durationSchema } from './fields.js'

const SHORTEST_MS = 60_000

/** A payment can be disputed for weeks, and its original events may be needed until then. */
const SHORT_RETENTION_MS = 35 * 86_400_000

export const backupSchema = z
  .strictObject({
    folder: z.string().regex(/\S/, 'is empty').describe('The folder for backups, and for nothing else.'),
    every: durationSchema('must be a duration such as "24h"')
      .refine((every) => every >= SHORTEST_MS, 'must be at least 1m')
      .describe('How old the newest backup may get before another is made.')
      .prefault('24h'),
    keep: z.int().min(1).max(10_000).default(7).describe('How many backups are kept.'),
  })
  .transform(({ folder, every, keep }) => ({ folder, everyMs: every, keep }))

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
