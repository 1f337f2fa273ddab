/* What the commands change of the endpoints in the content of a config file. */

import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import { isJsonObject, type JsonObject } from '../provider/json.js'
import { isoTime } from './api-keys.js'
import type { endpointsSchema } from './endpoints.js'

/** An endpoint in the config file. */
export type EndpointEntry = z.input<typeof endpointsSchema>[string]

/**
 * The content of a config file with one more endpoint; as it is, if it has just this one.
 * @throws {LatchkeyError} `usage` if the name is taken
 */
export function addEndpoint(config: unknown, name: string, entry: EndpointEntry): unknown {
  const { file, endpoints } = endpointsIn(config)
  const known = endpoints[name]
  if (known !== undefined && !isDeepStrictEqual(known, entry)) {
    const todo = 'choose another one with --name, and the same at the end of --url'
    throw new LatchkeyError('usage', `an endpoint named ${name} is already configured: ${todo}`)
  }
  return { ...file, endpoints: { ...endpoints, [name]: entry } }
}

/**
 * The content of a config file in which the endpoint has one more secret before its others. They end at `endsAt`, unless
 * they ended before.
 * @param secret the new one, as the config writes it; as it is, if it is there already
 */
export function addSecret(config: unknown, name: string, secret: string, endsAt: number): unknown {
  const { file, endpoints } = endpointsIn(config)
  const entry = endpoints[name]
  if (!isJsonObject(entry) || !Array.isArray(entry.secrets))
    throw noPlace(`endpoints.${name}.secrets`, 'list')
  const before: readonly unknown[] = entry.secrets
  if (before.includes(secret)) return config
  const secrets = [secret, ...before.map((one) => ending(one, endsAt))]
  return { ...file, endpoints: { ...endpoints, [name]: { ...entry, secrets } } }
}

function ending(secret: unknown, endsAt: number): unknown {
  if (!isJsonObject(secret)) return { secret, notAfter: isoTime(endsAt) }
  const endsBefore = typeof secret.notAfter === 'string' && Date.parse(secret.notAfter) <= endsAt
  return endsBefore ? secret : { ...secret, notAfter: isoTime(endsAt) }
}

function endpointsIn(config: unknown): { readonly file: JsonObject; readonly endpoints: JsonObject } {
  const file = isJsonObject(config) ? config : null
  const endpoints = file?.endpoints ?? {}
  if (file === null || !isJsonObject(endpoints)) throw noPlace('endpoints', 'object')
  return { file, endpoints }
}

function noPlace(path: string, form: 'list' | 'object'): LatchkeyError {
  const issues = [{ path, message: `must be ${form === 'list' ? 'a list' : 'an object'}` }]
  return new LatchkeyError('config_invalid', 'the config file has no place for an endpoint', { issues })
}
