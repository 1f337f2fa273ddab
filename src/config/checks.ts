import { isIPv4, isIPv6 } from 'node:net'
import type { z } from 'zod'
import { DOCUMENTED_POLICY } from '../entitlements/policy.js'
import type { Issue } from '../errors.js'
import { type ApiKeyFile, apiKeySchema, type EndpointFile, endpointSchema } from './access-schema.js'
import { formatPath, type Path } from './issues.js'
import { objectAt, valueAt } from './json-values.js'
import type { Overrides } from './overrides.js'
import { grantRowSchema, revokeRowSchema } from './policy-schema.js'
import { DEFAULT_PORT, listenerSchema } from './server-schema.js'
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

/** Two listeners can't share a port where their hosts overlap. What the environment overrides counts. */
export function findSharedPorts(config: unknown, { host, port }: Pick<Overrides, 'host' | 'port'>): Issue[] {
  const main = {
    path: ['server'],
    host: host ?? valueAt(config, ['server', 'host']),
    port: port ?? valueAt(config, ['server', 'port']) ?? DEFAULT_PORT,
  }
  const others = ['webhooks', 'metrics'].map((name) => ({
    path: ['server', name],
    host: valueAt(config, ['server', name, 'host']),
    port: valueAt(config, ['server', name, 'port']),
  }))
  const listeners = [main, ...others].flatMap((given) => {
    const parsed = listenerSchema.safeParse({ host: given.host, port: given.port })
    // The system chooses another port for each 0.
    return parsed.success && parsed.data.port !== 0 ? [{ path: given.path, ...parsed.data }] : []
  })
  return listeners.flatMap((listener, position) => {
    const other = listeners
      .slice(0, position)
      .find((earlier) => earlier.port === listener.port && overlap(earlier.host, listener.host))
    if (other === undefined) return []
    const message = `is the port of ${formatPath(other.path)} too (${other.host}:${other.port}): each listener needs its own`
    return [{ path: formatPath([...listener.path, 'port']), message }]
  })
}

/** Whether a listener on one host takes connections to the other. */
function overlap(one: string, other: string): boolean {
  return addressesOf(one).some((a) =>
    addressesOf(other).some((b) => a === b || takesAll(a, b) || takesAll(b, a)),
  )
}

/** `::` takes IPv4 too; `0.0.0.0` takes all IPv4, and a name may be that. */
function takesAll(wildcard: string, address: string): boolean {
  if (wildcard === '[::]') return true
  return wildcard === '[::ffff:0:0]' && (address.startsWith('[::ffff:') || !address.startsWith('['))
}

/** In one spelling, IPv4 as IPv6. Of names only `localhost` is known. */
function addressesOf(host: string): string[] {
  if (/^localhost$/i.test(host)) return ['127.0.0.1', '::1'].flatMap(addressesOf)
  const url = `http://${isIPv6(host) ? `[${host}]` : host}`
  if (!URL.canParse(url)) return [host]
  const { hostname } = new URL(url)
  return [isIPv4(hostname) ? new URL(`http://[::ffff:${hostname}]`).hostname : hostname]
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
