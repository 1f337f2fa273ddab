import { z } from 'zod'
import type { Issue } from '../errors.js'
import type { Problem } from '../handlers/problem.js'
import { BACKFILL_ENDPOINT, type Endpoint, MAX_TOLERANCE_SECONDS } from '../provider/endpoint.js'
import { USUAL_AHEAD_MS } from '../provider/envelope.js'
import { parseDuration } from './duration.js'
import { durationSchema, environmentSchema, instantSchema } from './fields.js'
import { ALMOST_NAME, NAME, shown, type Usable } from './problems.js'

/** The prefix of the provider's secrets: part of the secret's text, and of the HMAC key. */
const SECRET_PREFIX = 'whsec_'

/** The provider's own tolerance, and the default. */
const TOLERANCE_SECONDS = 300

/** Length of a secret without its prefix. */
const SHORT_SECRET = 16

/**
 * A signing secret as text. Its literal text is the HMAC key, so it is never trimmed. The prefix alone is public: with
 * it, anybody could sign.
 */
const secretTextSchema = z.string().regex(/^(?!\s*(whsec_)?\s*$)/, {
  error: ({ input }) =>
    /\S/.test(String(input)) ? `is empty: nothing follows ${SECRET_PREFIX}` : 'is empty',
})

const secretSchema = z
  .union(
    [
      secretTextSchema,
      z.strictObject({
        secret: secretTextSchema,
        notAfter: instantSchema.optional().describe('The secret expires at this time.'),
      }),
    ],
    'must be a text or { "secret", "notAfter" }',
  )
  .transform((given) => {
    const { secret, notAfter } = typeof given === 'string' ? { secret: given } : given
    return { secret, notAfter: notAfter === undefined ? null : Date.parse(notAfter) }
  })

export const endpointsSchema = z
  .record(
    // Checked by `findBadNames`: a record does not check the value of a wrong key.
    z.string().meta({ pattern: NAME.source }),
    z.strictObject({
      environment: environmentSchema,
      secrets: z.array(secretSchema).min(1).describe('Any of them may have signed a delivery.'),
      toleranceSeconds: z.int().min(1).max(MAX_TOLERANCE_SECONDS).default(TOLERANCE_SECONDS),
      aheadAtMost: durationSchema('must be a duration, such as "1d" or "10y"')
        .describe('How far ahead of the clock an event may be dated: over 1d only in the sandbox.')
        .prefault('1d'),
      serviceId: z
        .string()
        .regex(/^whep_[\w.-]{1,250}$/, 'must be the id of a webhook endpoint, which begins with whep_')
        .optional()
        .describe('The id that the payments service has for it, written by `latchkey endpoints register`.'),
    }),
  )
  .transform((endpoints): Endpoint[] =>
    Object.entries(endpoints).map(([name, { aheadAtMost, ...endpoint }]) => ({
      name,
      ...endpoint,
      aheadAtMostMs: aheadAtMost,
    })),
  )

export function findBadNames(endpoints: Usable<z.input<typeof endpointsSchema>>): Problem[] {
  return Object.keys(endpoints)
    .filter((name) => !NAME.test(name))
    .map((name) => ({
      path: ['endpoints', name],
      message: 'must be a name of 1 to 64 of a-z, 0-9 and "-"',
    }))
}

/** Only the sandbox's clock can be moved: a live event dated days ahead would decide about access until then. */
export function findLiveAhead(endpoints: Usable<z.input<typeof endpointsSchema>>): Problem[] {
  return Object.entries(endpoints).flatMap(([name, endpoint]) => {
    const { environment, aheadAtMost } = endpoint ?? {}
    const isAllowed = !aheadAtMost || parseDuration(aheadAtMost) <= USUAL_AHEAD_MS
    if (environment !== 'live' || isAllowed) return []
    const message = `is over 1d, and the endpoint is live: only events of the sandbox may be dated further ahead, so remove the key, or make the endpoint's environment "sandbox"`
    return [{ path: ['endpoints', name, 'aheadAtMost'], message }]
  })
}

/** One endpoint of the service delivers to one address. */
export function findSharedServiceIds(endpoints: Usable<z.input<typeof endpointsSchema>>): Problem[] {
  const given = Object.entries(endpoints).flatMap(([name, endpoint]) => {
    const { environment, serviceId } = endpoint ?? {}
    return serviceId ? [{ name, environment, serviceId }] : []
  })
  return given.flatMap(({ name, environment, serviceId }, index) => {
    const other = given
      .slice(0, index)
      .find((one) => one.serviceId === serviceId && one.environment === environment)
    if (other === undefined) return []
    const message = `is also the id of the endpoint ${shown(other.name, ALMOST_NAME)}`
    return [{ path: ['endpoints', name, 'serviceId'], message }]
  })
}

/** Endpoints without a secret that still counts: each of their deliveries is refused. */
export function findExpired(endpoints: readonly Endpoint[], now: number): Issue[] {
  return endpoints
    .filter(({ secrets }) => secrets.every(({ notAfter }) => notAfter !== null && notAfter <= now))
    .map(({ name }) => ({
      path: `endpoints.${name}.secrets`,
      message: 'have all passed their notAfter, so every delivery is refused: add the current secret',
    }))
}

/** A secret of a sandbox endpoint must not be valid for a live one. */
export function findSharedSecrets(endpoints: Usable<z.input<typeof endpointsSchema>>): Problem[] {
  const secrets = Object.entries(endpoints).flatMap(([name, endpoint]) =>
    (endpoint?.secrets ?? []).flatMap((given, index) => {
      if (given === null) return []
      const path = ['endpoints', name, 'secrets', index]
      const { environment } = endpoint ?? {}
      if (typeof given === 'string') return [{ name, environment, text: given, path }]
      return [{ name, environment, text: given.secret, path: [...path, 'secret'] }]
    }),
  )
  return secrets.flatMap(({ environment, text, path }) => {
    const live = secrets.findLast((other) => other.environment === 'live' && other.text === text)
    if (environment !== 'sandbox' || live === undefined) return []
    const message = `is also a secret of the live endpoint ${shown(live.name, ALMOST_NAME)}: use separate secrets for sandbox and live`
    return [{ path, message }]
  })
}

const NAMED_AS_REPORTS =
  'has the name under which lists show what backfills report: give it another name, here and in its address'

export function warnOfEndpoints(endpoints: readonly Endpoint[]): Problem[] {
  if (endpoints.length === 0) {
    return [{ path: ['endpoints'], message: 'is empty: no delivery can be received' }]
  }
  return endpoints.flatMap(({ name, secrets }) => [
    ...(name === BACKFILL_ENDPOINT ? [{ path: ['endpoints', name], message: NAMED_AS_REPORTS }] : []),
    ...secrets.flatMap(({ secret }, index) =>
      doubtsAbout(secret).map((message) => ({ path: ['endpoints', name, 'secrets', index], message })),
    ),
  ])
}

function doubtsAbout(secret: string): string[] {
  const doubts: string[] = []
  const text = secret.trim()
  const after = text.startsWith(SECRET_PREFIX) ? ` after ${SECRET_PREFIX}` : ''
  if (text !== secret) doubts.push('begins or ends with white space, which is part of the secret')
  if (after === '') doubts.push(`does not begin with ${SECRET_PREFIX}, as the provider's secrets do`)
  if (text.replace(/^whsec_/, '').trim().length < SHORT_SECRET)
    doubts.push(`can be guessed: it has fewer than ${SHORT_SECRET} characters${after}`)
  return doubts
}
