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
  failedRenewal: z
    .enum(['keep', 'revoke'])
    .optional()
    .describe('Whether a renewal that fails ends access at once, or what follows from it does.'),
  canceled: z
    .enum(['effective', 'period_end'])
    .optional()
    .describe('Whether a cancellation ends access when it takes effect, or with the paid period.'),
  completed: z
    .enum(['period_end', 'keep'])
    .optional()
    .describe('Whether a fixed term ends with its last period, or never.'),
  paidCycle: z
    .enum(['grants', 'informs'])
    .optional()
    .describe('Whether a paid cycle gives access though its payment was never reported.'),
  lapseAfter: z
    .string()
    .regex(DURATION_PATTERN, 'must be a duration, such as "45d"')
    .nullable()
    .optional()
    .describe('How long after the newest known period end access ends by itself; null: never.'),
})
export type PolicyFile = z.infer<typeof policySchema>
