import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { ApiKey } from './api-key.js'
import { invalidParameter, readParameter } from './query.js'

/** The whole query of a route that takes nothing else. */
export const ENVIRONMENT_ONLY = ['environment'] as const

/**
 * The environment that a question is about: `?environment=`, or else live, or else the only one that is
 * configured.
 *
 * @throws LatchkeyError `invalid_request` for another word; `forbidden` if it is outside the key's.
 */
export function readEnvironment(
  query: URLSearchParams,
  configured: readonly Environment[],
  key: ApiKey,
): Environment {
  const named = readParameter(query, 'environment')
  const environment = named ?? (isSandboxOnly(configured) ? 'sandbox' : 'live')
  if (environment !== 'live' && environment !== 'sandbox') {
    throw invalidParameter('environment', 'is neither "live" nor "sandbox"')
  }
  if (!key.environments.includes(environment)) {
    throw new LatchkeyError('forbidden', `This key is not for the environment "${environment}".`)
  }
  return environment
}

/**
 * The environments that an answer takes in: the one that is named, or all that the key is for.
 *
 * @throws LatchkeyError `invalid_request`, `forbidden`.
 */
export function shownEnvironments(
  query: URLSearchParams,
  configured: readonly Environment[],
  key: ApiKey,
): readonly Environment[] {
  return query.has('environment') ? [readEnvironment(query, configured, key)] : key.environments
}

function isSandboxOnly(configured: readonly Environment[]): boolean {
  return configured.includes('sandbox') && !configured.includes('live')
}
