import { z } from 'zod'
import { TERMINAL_TYPES } from '../entitlements/policy.js'
import { PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES } from '../provider/event-types.js'
import { DURATION_PATTERN } from './duration.js'

const GRANT_TYPES = PAYMENT_EVENT_TYPES.filter((type) => !TERMINAL_TYPES.includes(type))
const REVOKE_TYPES = [...PAYMENT_EVENT_TYPES, ...SUBSCRIPTION_EVENT_TYPES]

export const grantRowSchema = z.array(
  z.enum(GRANT_TYPES, {
    error: ({ input }) => {
      if (typeof input !== 'string') return undefined
      if (input.startsWith('subscription.'))
        return 'subscription events say that access is paid: they grant nothing'
      if (TERMINAL_TYPES.some((type) => type === input))
        return 'such a payment will never be paid: it grants nothing'
      return `must be a payment or checkout event type: ${GRANT_TYPES.join(', ')}`
    },
  }),
)

export const revokeRowSchema = z.array(
  z.enum(REVOKE_TYPES, {
    error: ({ input }) =>
      typeof input === 'string' ? `must be an event type: ${REVOKE_TYPES.join(', ')}` : undefined,
  }),
)

/** Rows and switches left out take the documented default. */
export const policySchema = z.strictObject({
  grantOn: z
    .strictObject({
      card: grantRowSchema.optional(),
      crypto: grantRowSchema.optional(),
      unknown: grantRowSchema.optional(),
    })
    .optional(),
  revokeOn: z
    .strictObject({
      card: revokeRowSchema.optional(),
      crypto: revokeRowSchema.optional(),
      unknown: revokeRowSchema.optional(),
    })
    .optional(),
  failedRenewal: z.enum(['keep', 'revoke']).optional(),
  canceled: z.enum(['effective', 'period_end']).optional(),
  completed: z.enum(['period_end', 'keep']).optional(),
  paidCycle: z.enum(['grants', 'informs']).optional(),
  lapseAfter: z
    .string()
    .regex(DURATION_PATTERN, 'must be a duration, such as "45d"')
    .nullable()
    .optional()
    .describe('How long after the newest known period end access ends by itself; null: never.'),
})
export type PolicyFile = z.infer<typeof policySchema>
