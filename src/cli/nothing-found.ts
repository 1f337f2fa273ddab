import type { Config } from '../config/types.js'
import type { EventFilter } from '../entitlements/stored-event.js'
import { LatchkeyError } from '../errors.js'
import { nearestName } from '../handlers/nearest-name.js'
import { MANUAL_ENDPOINT } from '../ingest/prepare.js'
import { CANONICAL_TYPE_OF_V2 } from '../provider/event-types.js'
import { SAMPLE_TYPES } from '../provider/sample-event.js'
import { readEventPage } from '../store/event-questions.js'
import { otherThan } from './command.js'
import type { CliContext } from './context.js'
import { readStore } from './read-store.js'

/**
 * Looks whether it is for a slip in the filter that no event was found, since that answer looks right otherwise.
 * Types are open-ended: what is stored is known too.
 *
 * @throws {LatchkeyError} `usage` for an endpoint that is not configured, and through which nothing came
 */
export async function explainNothingFound(
  filter: EventFilter,
  config: Config,
  { err }: Pick<CliContext, 'err'>,
): Promise<void> {
  await assertKnownEndpoint(filter, config)
  const { environment, type } = filter
  const other = otherThan(environment)
  if (await isStored({ ...filter, environment: other }, config)) {
    err(`note: such events are stored in ${other}: add --environment ${other}\n`)
    return
  }
  if (type !== null && !(await isStored({ environment, type }, config))) {
    const question = canonicalName(type) ?? meant(type, SAMPLE_TYPES.v3)
    err(`note: no event of the type ${JSON.stringify(type)} is stored${question}\n`)
  }
}

/** The hint for a legacy name, whose events are stored under that of today; null for any other. */
function canonicalName(type: string): string | null {
  const canonical = new Map<string, string>(Object.entries(CANONICAL_TYPE_OF_V2)).get(type)
  return canonical === undefined ? null : ` by that name: it is ${canonical} here, of either generation`
}

/**
 * Events outlive the config of their endpoint: what is stored is known too.
 * @throws {LatchkeyError} `usage` for an endpoint that is not configured, and through which nothing came
 */
export async function assertKnownEndpoint(
  { environment, endpoint }: Pick<EventFilter, 'environment' | 'endpoint'>,
  config: Config,
): Promise<void> {
  if (endpoint === null) return
  const names = [...config.endpoints.map(({ name }) => name), MANUAL_ENDPOINT]
  if (names.includes(endpoint) || (await isStored({ environment, endpoint }, config))) return
  const question = meant(endpoint, names) || `; there are ${names.join(', ')}`
  throw new LatchkeyError(
    'usage',
    `there is no endpoint ${JSON.stringify(endpoint)}, and nothing came through it${question}`,
  )
}

async function isStored(
  only: Pick<EventFilter, 'environment'> & Partial<EventFilter>,
  config: Config,
): Promise<boolean> {
  const query = { filter: { ...ALL, ...only }, before: null, limit: 1 }
  const { items } = await readStore(config, (db) => readEventPage(db, query, Number.POSITIVE_INFINITY))
  return items.length > 0
}

const ALL = { disposition: null, type: null, customerId: null, endpoint: null, from: null, to: null }

/** `; did you mean payment.refunded?`, or nothing where no name is like it. */
function meant(text: string, names: readonly string[]): string {
  const nearest = nearestName(text, names)
  return nearest === null || nearest === text ? '' : `; did you mean ${nearest}?`
}
