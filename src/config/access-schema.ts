import { z } from 'zod'
import { API_SCOPES } from '../handlers/api-key.js'
import { MAX_TOLERANCE_SECONDS } from '../provider/endpoint.js'

export const environmentSchema = z.enum(['live', 'sandbox'])

const ENDPOINT_NAME = /^[a-z0-9-]{1,64}$/
const KEY_HASH = /^sha256:[0-9a-fA-F]{64}$/

/** What a shell hashes when the variable that should hold the key is not set. */
const HASH_OF_NOTHING = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** How the provider's secrets begin: part of the secret's text, and of the HMAC key. */
export const SECRET_PREFIX = 'whsec_'

/** The provider's own tolerance, and the default. */
const TOLERANCE_SECONDS = 300

/**
 * A signing secret as text. Its literal text is the HMAC key, so it is never trimmed. The prefix alone is public: who
 * knows it could sign anything.
 */
const secretTextSchema = z.string().regex(/^(?!\s*(whsec_)?\s*$)/, {
  error: ({ input }) =>
    /\S/.test(String(input)) ? `is empty: nothing follows ${SECRET_PREFIX}` : 'is empty',
})

const secretSchema = z.union(
  [
    secretTextSchema,
    z.strictObject({
      secret: secretTextSchema,
      notAfter: z.iso
        .datetime({ offset: true, error: 'must be an ISO 8601 time, such as 2027-01-31T00:00:00Z' })
        .optional()
        .describe('From then on the secret no longer counts.'),
    }),
  ],
  'must be a text or { "secret", "notAfter" }',
)

export const endpointSchema = z.strictObject({
  environment: environmentSchema,
  secrets: z.array(secretSchema).min(1).describe('Any of them may have signed a delivery.'),
  toleranceSeconds: z.int().min(1).max(MAX_TOLERANCE_SECONDS).default(TOLERANCE_SECONDS),
})
export type EndpointFile = z.infer<typeof endpointSchema>

export const endpointsSchema = z.record(
  z.string().regex(ENDPOINT_NAME, 'must be a name of 1 to 64 of a-z, 0-9 and "-"'),
  endpointSchema,
)

export const apiKeySchema = z.strictObject({
  name: z.string().regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u, 'must be a name without control characters'),
  hash: z
    .string()
    .regex(KEY_HASH, 'must be sha256:<64 hex digits>')
    .refine(
      (hash) => hash.toLowerCase() !== HASH_OF_NOTHING,
      'is the hash of the empty text, not of a key: make a key with `latchkey keys create`',
    )
    .describe('The SHA-256 of the key.'),
  scopes: z.array(z.enum(API_SCOPES)).min(1),
  environments: z.array(environmentSchema).min(1),
})
export type ApiKeyFile = z.infer<typeof apiKeySchema>

export const apiSchema = z.strictObject({ keys: z.array(apiKeySchema).default([]) })
