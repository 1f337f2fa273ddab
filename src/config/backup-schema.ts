import { z } from 'zod'
import { DURATION_PATTERN, parseDuration } from './duration.js'

const SHORTEST_MS = 60_000

export const backupSchema = z.strictObject({
  folder: z.string().regex(/\S/, 'is empty').describe('Where the backups are kept: a folder of their own.'),
  every: z
    .string()
    .regex(DURATION_PATTERN, 'must be a duration such as "24h"')
    .refine(
      (text) => !DURATION_PATTERN.test(text) || parseDuration(text) >= SHORTEST_MS,
      'must be at least 1m',
    )
    .default('24h')
    .describe('How old the newest backup gets before another is made.'),
  keep: z.int().min(1).max(10_000).default(7).describe('How many backups are kept.'),
})
