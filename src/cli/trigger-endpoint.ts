import type { Config } from '../config/types.js'
import { LatchkeyError } from '../errors.js'
import type { Endpoint } from '../provider/endpoint.js'

export interface EndpointChoice {
  readonly endpoint?: string
  readonly live?: true
}

/**
 * The endpoint that a sample goes to: a sandbox one unless `--live` says otherwise, so that
 * nobody gets live access by a slip. Throws `usage`.
 */
export function chooseEndpoint({ endpoints }: Config, { endpoint: name, live }: EndpointChoice): Endpoint {
  const environment = live ? 'live' : 'sandbox'
  if (name === undefined) {
    const first = endpoints.find((endpoint) => endpoint.environment === environment)
    if (first !== undefined) return first
    const advice = live
      ? 'add one to the config'
      : 'add one to the config, or say --live to change live access'
    throw new LatchkeyError('usage', `no ${environment} endpoint is configured: ${advice}`)
  }
  const named = endpoints.find((endpoint) => endpoint.name === name)
  if (named === undefined) {
    const names = endpoints.map((endpoint) => endpoint.name).join(', ') || 'none'
    throw new LatchkeyError('usage', `there is no endpoint ${JSON.stringify(name)}; configured: ${names}`)
  }
  if (named.environment !== environment) {
    const advice = live ? 'leave out --live' : 'say --live too, if live access is to change'
    throw new LatchkeyError('usage', `the endpoint ${name} is ${named.environment}: ${advice}`)
  }
  return named
}

/** The first of the endpoint's secrets that still counts. Throws `usage` if all have been rotated out. */
export function currentSecret({ name, secrets }: Endpoint, now: number): string {
  const current = secrets.find(({ notAfter }) => notAfter === null || now < notAfter)
  if (current !== undefined) return current.secret
  throw new LatchkeyError('usage', `every secret of the endpoint ${name} has passed its notAfter`)
}

// A wildcard is an address to listen on; the same machine is reached at its loopback address.
const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Where the running daemon takes webhooks. Throws `usage` where the config leaves the port to the system. */
export function webhooksUrl({ server }: Config): string {
  const { host, port } = server.webhooks ?? server
  if (port === 0)
    throw new LatchkeyError('usage', 'the config leaves the port to the system: name the daemon with --url')
  const reached = LOOPBACK_OF[host] ?? host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}
