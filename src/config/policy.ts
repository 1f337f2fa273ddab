import { z } from 'zod'
import { DOCUMENTED_POLICY, type Policy, SWITCHES, TERMINAL_TYPES } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { DeepReadonly } from '../handlers/answers.js'
import { describeIssue, type Problem, problemsIn } from '../handlers/problem.js'
import { ofEach } from '../provider/accounts.js'
import { PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES } from '../provider/event-types.js'
import { durationSchema, withFallback } from './fields.js'
import { toIssue, type Usable } from './problems.js'

const RAILS = ['card', 'crypto', 'unknown'] as const

const GRANT_TYPES = PAYMENT_EVENT_TYPES.filter((type) => !TERMINAL_TYPES.includes(type))
const REVOKE_TYPES = [...PAYMENT_EVENT_TYPES, ...SUBSCRIPTION_EVENT_TYPES]

/** Dunning may last this long; a shorter grace ends the access of customers who still pay. */
const SHORT_LAPSE_MS = 30 * 86_400_000

const grantTypeSchema = z.enum(GRANT_TYPES, {
  error: ({ input }) => {
    if (typeof input !== 'string') return undefined
    if (input.startsWith('subscription.'))
      return 'subscription events say that access is paid: they grant nothing'
    if (TERMINAL_TYPES.some((type) => type === input))
      return 'such a payment will never be paid: it grants nothing'
    return `must be a payment or checkout event type: ${GRANT_TYPES.join(', ')}`
  },
})

const revokeTypeSchema = z.enum(REVOKE_TYPES, {
  error: ({ input }) =>
    typeof input === 'string' ? `must be an event type: ${REVOKE_TYPES.join(', ')}` : undefined,
})

function rowsSchema<Type extends z.ZodType, Documented>(
  type: Type,
  documented: Readonly<Record<(typeof RAILS)[number], Documented>>,
) {
  const rows = ofEach(RAILS, (rail) => withFallback(z.array(type), documented[rail]))
  return withFallback(z.strictObject(rows), documented)
}

const documented = DOCUMENTED_POLICY

/** Omitted rows and switches get the documented default. */
export const policySchema = z.strictObject({
  grantOn: rowsSchema(grantTypeSchema, documented.grantOn),
  revokeOn: rowsSchema(revokeTypeSchema, documented.revokeOn),
  failedRenewal: withFallback(z.enum(SWITCHES.failedRenewal), documented.failedRenewal).describe(
    'Whether a failed renewal ends access at once, or only the events that follow it do.',
  ),
  canceled: withFallback(z.enum(SWITCHES.canceled), documented.canceled).describe(
    'Whether a cancellation ends access when it takes effect, or with the paid period.',
  ),
  completed: withFallback(z.enum(SWITCHES.completed), documented.completed).describe(
    'Whether a fixed term ends with its last period, or never.',
  ),
  paidCycle: withFallback(z.enum(SWITCHES.paidCycle), documented.paidCycle).describe(
    'Whether a paid cycle grants access even if its payment was never reported.',
  ),
  lapseAfter: withFallback(
    durationSchema('must be a duration, such as "45d"').nullable(),
    documented.lapseAfter,
  ).describe('How long after the newest known period end access ends by itself; null: never.'),
})

/** A policy as in the config file. */
export type PolicyText = DeepReadonly<z.input<typeof policySchema>>

/**
 * Parses a policy written as in the config file.
 * @throws {LatchkeyError} `invalid_request` with every problem, with paths under `policy` as in a request body
 */
export function policyFrom(given: unknown): Policy {
  const parsed = policySchema.safeParse(given, { error: describeIssue })
  if (parsed.success) return parsed.data
  const issues = problemsIn(parsed.error).map(({ path, message }) =>
    toIssue({ path: ['policy', ...path], message }),
  )
  throw new LatchkeyError('invalid_request', 'The policy is not valid.', { issues })
}

/** Types that both grant and revoke on one rail; an omitted row is the documented one. */
export function findTypesOfBothKinds({ grantOn, revokeOn }: Usable<z.input<typeof policySchema>>): Problem[] {
  return RAILS.flatMap((rail) => {
    const given = grantOn?.[rail]
    const grants = given === undefined ? documented.grantOn[rail] : (given ?? [])
    const row = revokeOn?.[rail]
    const revokes: readonly unknown[] = row === undefined ? documented.revokeOn[rail] : (row ?? [])
    return grants.flatMap((type, index) => {
      if (type === null || !revokes.includes(type)) return []
      const message = `${type} both grants (grantOn.${rail}) and revokes (revokeOn.${rail})`
      const path = given === undefined ? ['revokeOn', rail] : ['grantOn', rail, index]
      return [{ path: ['policy', ...path], message }]
    })
  })
}

export function warnOfPolicy({ grantOn, lapseAfter }: Policy): Problem[] {
  const warnings: Problem[] = RAILS.filter((rail) => grantOn[rail].length === 0).map((rail) => ({
    path: ['policy', 'grantOn', rail],
    message: 'is empty: no such payment gives access',
  }))
  if (lapseAfter !== null && lapseAfter < SHORT_LAPSE_MS) {
    const message = 'is under 30 days, which dunning may last'
    warnings.push({ path: ['policy', 'lapseAfter'], message })
  }
  return warnings
}

/**
 * The documented table, plus what merchants expect in cases it leaves open: a settled card payment grants (its
 * authorization may have been missed), and a chargeback revokes.
 */
export const EXAMPLE_POLICY: Policy = {
  ...documented,
  grantOn: { ...documented.grantOn, card: [...documented.grantOn.card, 'payment.succeeded'] },
  revokeOn: {
    card: [...documented.revokeOn.card, 'payment.chargeback'],
    crypto: documented.revokeOn.crypto,
    unknown: [...documented.revokeOn.unknown, 'payment.chargeback'],
  },
}
