import type { z } from 'zod'
import { DOCUMENTED_POLICY } from '../entitlements/policy.js'
import type { Issue } from '../errors.js'
import { type ApiKeyFile, apiKeySchema, type EndpointFile, endpointSchema } from './access-schema.js'
import { formatPath, type Path } from './issues.js'
import { grantRowSchema, revokeRowSchema } from './policy-schema.js'

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
  ]
}

/** A secret that opens a sandbox endpoint must open nothing live. */
function findSharedSecrets(endpoints: readonly (readonly [string, EndpointFile])[]): Issue[] {
  const liveEndpointOf = new Map<string, string>()
  for (const [name, { environment, secrets }] of endpoints) {
    if (environment === 'live') for (const secret of secrets) liveEndpointOf.set(textOf(secret), name)
  }
  return endpoints.flatMap(([name, { environment, secrets }]) => {
    if (environment === 'live') return []
    return secrets.flatMap((secret, index) => {
      const live = liveEndpointOf.get(textOf(secret))
      const within = typeof secret === 'string' ? [] : ['secret']
      const path = formatPath(['endpoints', name, 'secrets', index, ...within])
      const message = `is a secret of the live endpoint ${live} too: a sandbox secret must open nothing live`
      return live === undefined ? [] : [{ path, message }]
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
  return grants.flatMap((type, index) => {
    if (!revokes.includes(type)) return []
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

/** The row as given, the documented one where none is given, and none where it can't be read. */
function rowAt<T>(
  config: unknown,
  path: Path,
  schema: z.ZodType<T[]>,
  documented: readonly T[],
): readonly T[] {
  const value = valueAt(config, path)
  if (value === undefined) return documented
  const row = schema.safeParse(value)
  return row.success ? row.data : []
}

function usableEndpoints(config: unknown): (readonly [string, EndpointFile])[] {
  return Object.entries(objectAt(config, ['endpoints'])).flatMap(([name, value]) => {
    const endpoint = endpointSchema.safeParse(value)
    return endpoint.success ? [[name, endpoint.data] as const] : []
  })
}

function usableKeys(config: unknown): (readonly [number, ApiKeyFile])[] {
  return Object.values(objectAt(config, ['api', 'keys'])).flatMap((value, index) => {
    const key = apiKeySchema.safeParse(value)
    return key.success ? [[index, key.data] as const] : []
  })
}

function objectAt(value: unknown, path: Path): object {
  const found = valueAt(value, path)
  return typeof found === 'object' && found !== null ? found : {}
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (node, key) => (typeof node === 'object' && node !== null ? Reflect.get(node, key) : undefined),
    value,
  )
}

function textOf(secret: EndpointFile['secrets'][number]): string {
  return typeof secret === 'string' ? secret : secret.secret
}
