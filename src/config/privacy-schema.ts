import { z } from 'zod'
import { DURATION_PATTERN } from './duration.js'

export const retentionSchema = z.strictObject({
  bodiesAfter: z
    .string()
    .regex(DURATION_PATTERN, 'must be a duration, such as "180d"')
    .describe(
      'How old the exact bytes of an event get before they are removed; what was read from them stays.',
    ),
})

export const erasureSchema = z.strictObject({
  onCustomerDeleted: z
    .boolean()
    .default(false)
    .describe(
      'Whether customers whom the payments service says it deleted are erased here too, those of before included: within a minute, 100 at a time, and for good.',
    ),
})
