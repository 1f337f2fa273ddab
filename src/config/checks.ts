import type { z } from 'zod'
import { DOCUMENTED_POLICY } from '../entitlements/policy.js'
import type { Issue } from '../errors.js'
import { type ApiKeyFile, apiKeySchema, type EndpointFile, endpointSchema } from './access-schema.js'
import { formatPath, type Path } from './issues.js'
import { objectAt, valueAt } from './json-values.js'
import { grantRowSchema, revokeRowSchema } from './policy-schema.js'
import { findSyncConflicts } from './sync-checks.js'

const RAILS = ['card', 'crypto', 'unknown'] as const

/**
 * The rules that join several values. They read whatever parses by itself,
 * so that a problem in one place does not hide a problem between two others.
 */
export function findConflicts(config: unknown): Issue[] {
  return [
    ...findSharedSecrets(usableEndpoints(config)),
    ...findRepeatedKeys(usableKeys(config)),
    ...RAILS.flatMap((rail) => findTypesOfBothKinds(config, rail)),
    ...findSyncConflicts(config),
  ]
}

/** A secret that opens a sandbox endpoint must open nothing live. */
function findSharedSecrets(endpoints: readonly UsableEndpoint[]): Issue[] {
  const liveEndpointOf = new Map<string, string>()
  for (const { name, environment, secrets } of endpoints) {
    if (environment === 'live') for (const { text } of secrets) liveEndpointOf.set(text, name)
  }
  return endpoints.flatMap(({ environment, secrets }) => {
    if (environment === 'live') return []
    return secrets.flatMap(({ text, path }) => {
      const live = liveEndpointOf.get(text)
      const message = `is a secret of the live endpoint ${live} too: a sandbox secret must open nothing live`
      return live === undefined ? [] : [{ path: formatPath(path), message }]
    })
  })
}

/** A key's name stands for it in every log, and its hash decides which name that is. */
function findRepeatedKeys(keys: readonly (readonly [number, ApiKeyFile])[]): Issue[] {
  return keys.flatMap(([index, key], position) => {
    const earlier = keys.slice(0, position).map(([, other]) => other)
    const issues: Issue[] = []
    if (earlier.some(({ name }) => name === key.name)) {
      issues.push({
        path: formatPath(['api', 'keys', index, 'name']),
        message: 'is the name of another key too',
      })
    }
    if (earlier.some(({ hash }) => hash.toLowerCase() === key.hash.toLowerCase())) {
      issues.push({
        path: formatPath(['api', 'keys', index, 'hash']),
        message: 'is the hash of another key too',
      })
    }
    return issues
  })
}

function findTypesOfBothKinds(config: unknown, rail: (typeof RAILS)[number]): Issue[] {
  const grants = rowAt(config, ['policy', 'grantOn', rail], grantRowSchema, DOCUMENTED_POLICY.grantOn[rail])
  const revokes = rowAt(
    config,
    ['policy', 'revokeOn', rail],
    revokeRowSchema,
    DOCUMENTED_POLICY.revokeOn[rail],
  )
  return grants.flatMap(([index, type]) => {
    if (!revokes.some(([, revoking]) => revoking === type)) return []
    const message = `${type} both grants (grantOn.${rail}) and takes back (revokeOn.${rail})`
    const given = valueAt(config, ['policy', 'grantOn', rail]) !== undefined
    return [
      {
        path: formatPath(given ? ['policy', 'grantOn', rail, index] : ['policy', 'revokeOn', rail]),
        message,
      },
    ]
  })
}

/** What of the row can be read, each with its index; the documented row where none is given. */
function rowAt<T>(
  config: unknown,
  path: Path,
  schema: z.ZodArray<z.ZodType<T>>,
  documented: readonly T[],
): readonly (readonly [number, T])[] {
  const value = valueAt(config, path)
  if (value === undefined) return [...documented.entries()]
  if (!Array.isArray(value)) return []
  return usable(value, schema.element)
}

/** What of an endpoint can be read, whatever is wrong with the rest of it. */
interface UsableEndpoint {
  readonly name: string
  readonly environment: EndpointFile['environment']
  readonly secrets: readonly { readonly text: string; readonly path: Path }[]
}

function usableEndpoints(config: unknown): UsableEndpoint[] {
  const { environment: environmentSchema, secrets: secretsSchema } = endpointSchema.shape
  return Object.keys(objectAt(config, ['endpoints'])).flatMap((name) => {
    const environment = environmentSchema.safeParse(valueAt(config, ['endpoints', name, 'environment']))
    if (!environment.success) return []
    const given = Object.values(objectAt(config, ['endpoints', name, 'secrets']))
    const secrets = usable(given, secretsSchema.element).map(([index, secret]) => {
      const path = ['endpoints', name, 'secrets', index]
      return typeof secret === 'string'
        ? { text: secret, path }
        : { text: secret.secret, path: [...path, 'secret'] }
    })
    return [{ name, environment: environment.data, secrets }]
  })
}

function usable<T>(values: readonly unknown[], schema: z.ZodType<T>): (readonly [number, T])[] {
  return values.flatMap((value, index) => {
    const parsed = schema.safeParse(value)
    return parsed.success ? [[index, parsed.data] as const] : []
  })
}

function usableKeys(config: unknown): (readonly [number, ApiKeyFile])[] {
  return usable(Object.values(objectAt(config, ['api', 'keys'])), apiKeySchema)
}
