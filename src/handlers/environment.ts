import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { ApiKey } from './api-key.js'
import { invalidParameter, readParameter } from './query.js'

/** The whole query of a route that takes nothing else. */
export const ENVIRONMENT_ONLY = ['environment'] as const

/** Every environment that the store may hold data of, configured today or not. */
const BOTH: readonly Environment[] = ['live', 'sandbox']

/**
 * The environment that a question is about: `?environment=`; left out, the only one of the key, else the only one
 * that is configured, else live.
 *
 * @throws LatchkeyError `invalid_request` for another word; `forbidden` if it is outside the key's.
 */
export function readEnvironment(
  query: URLSearchParams,
  configured: readonly Environment[],
  key: ApiKey,
): Environment {
  return chooseEnvironment(readParameter(query, 'environment'), () => configured, key)
}

/** The same of the environment that is named; null: none is. */
export function chooseEnvironment(
  named: string | null,
  configured: () => readonly Environment[],
  key: ApiKey,
): Environment {
  const environment = named ?? onlyOne(key.environments) ?? onlyOne(configured()) ?? 'live'
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

/** Whether a key is for every environment. */
export function isForBoth(key: ApiKey): boolean {
  return BOTH.every((environment) => key.environments.includes(environment))
}

/**
 * Sees that a key is for every environment, for what can't be done, or shown, in one of them alone.
 *
 * @throws LatchkeyError `forbidden`.
 */
export function requireBoth(key: ApiKey, what = 'This request'): void {
  if (isForBoth(key)) return
  throw new LatchkeyError(
    'forbidden',
    `${what} covers live and sandbox: use a key for both environments, or the latchkey command beside the daemon.`,
  )
}

function onlyOne(environments: readonly Environment[]): Environment | null {
  const [first] = environments
  return first !== undefined && environments.every((one) => one === first) ? first : null
}
