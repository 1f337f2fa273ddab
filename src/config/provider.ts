import { z } from 'zod'
import type { DeepReadonly } from '../handlers/answers.js'
import type { Problem } from '../handlers/problem.js'
import type { Environment } from '../provider/event.js'
import { cronSchema, timezoneSchema } from './cron.js'
import { withFallback } from './fields.js'

/** Plain http is for this machine alone: the key goes with every call. */
const baseUrlSchema = z.string().check(({ value, issues }) => {
  const message = URL.canParse(value) ? problemOf(new URL(value)) : 'must be an https address'
  if (message !== null) issues.push({ code: 'custom', message, input: value })
})

function problemOf({ protocol, hostname, username, password, search, hash }: URL): string | null {
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  if (protocol !== 'https:' && !(protocol === 'http:' && isHere)) {
    return protocol === 'http:'
      ? 'must be an https address: only an address of this machine may be http'
      : 'must be an https address'
  }
  if (username !== '' || password !== '') return 'must not have a user name or a password'
  return search === '' && hash === '' ? null : 'must not have a query or a fragment'
}

/** The service's own prefix says of which environment a key is. */
function apiKeySchema(environment: Environment) {
  const form = new RegExp(`^sk_${environment}_[!-~]+$`)
  const other = environment === 'live' ? 'sandbox' : 'live'
  return z.string().regex(form, {
    error: ({ input }) => {
      const key = String(input)
      if (!/\S/.test(key)) return 'is empty'
      if (key.startsWith(`sk_${other}_`)) return `is a ${other} key: set a ${environment} key here`
      return `must be a ${environment} key: sk_${environment}_ and what follows it, without spaces or line breaks`
    },
  })
}

function accessSchema(environment: Environment) {
  return withFallback(
    z.strictObject({
      baseUrl: baseUrlSchema.describe('Where the API is; paths such as /v3/payments follow it.'),
      apiKey: apiKeySchema(environment).describe(`A key that begins with sk_${environment}_.`),
      legacy: z
        .boolean()
        .default(false)
        .describe('Whether the v2 API is asked for chargebacks, of which v3 has no list.'),
    }),
    null,
  )
}

const NOT_USED = 'As 1.0 had it: checked, and not used. Write `live` or `sandbox` in its place.'

export const providerSchema = z
  .strictObject({
    live: accessSchema('live'),
    sandbox: accessSchema('sandbox'),
    baseUrl: z
      .url({
        protocol: /^https?$/,
        error: ({ input }) => (input === undefined ? undefined : 'must be an http or https address'),
      })
      .optional()
      .describe(NOT_USED),
    apiKey: z.string().regex(/\S/, 'is empty').optional().describe(NOT_USED),
  })
  .transform(({ live, sandbox, baseUrl, apiKey }) => ({
    live,
    sandbox,
    hasUnused: baseUrl !== undefined || apiKey !== undefined,
  }))

export const backfillSchema = z.strictObject({
  schedule: withFallback(cronSchema, null).describe(
    "When the service's own records are read for what no webhook told; left out: when asked to.",
  ),
  timezone: timezoneSchema.default('UTC').describe('The time zone of `schedule`.'),
})

export function warnOfProvider({ hasUnused }: DeepReadonly<z.output<typeof providerSchema>>): Problem[] {
  if (!hasUnused) return []
  const message =
    'has baseUrl and apiKey as 1.0 had them, which are not used: move them to provider.live or provider.sandbox'
  return [{ path: ['provider'], message }]
}
