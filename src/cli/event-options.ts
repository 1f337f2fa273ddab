import { type Command, Option } from 'commander'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { StoredEventJson } from '../handlers/events.js'
import { nearestName } from '../handlers/nearest-name.js'
import { CANONICAL_TYPE_OF_V2 } from '../provider/event-types.js'
import { SAMPLE_TYPES } from '../provider/sample-event.js'
import type { StoredEvent } from '../store/event-questions.js'
import type { Api, ApiOptions } from './api.js'
import { parseId, parseInstant } from './command.js'
import { type CliContext, otherThan } from './context.js'

/** Every one there is: one that is left out does not compile. */
const DISPOSITIONS = Object.keys({
  applied: true,
  ignored: true,
  held: true,
  quarantined: true,
} satisfies Record<StoredEvent['disposition'], true>)

/** How a command says which stored events it means. */
export interface EventFilterOptions extends ApiOptions {
  readonly type?: string
  readonly disposition?: StoredEvent['disposition']
  readonly customer?: string
  readonly endpoint?: string
  /** Epoch milliseconds, as the next one. */
  readonly from?: number
  readonly to?: number
}

export function withEventFilter(command: Command): Command {
  return command
    .option('--type <type>', 'only of this type, such as payment.succeeded for either generation', parseId)
    .addOption(new Option('--disposition <word>', 'only with this disposition').choices(DISPOSITIONS))
    .option('--customer <id>', 'only what names this customer', parseId)
    .option('--endpoint <name>', 'only what came through this endpoint', parseId)
    .option('--from <time>', 'only what was first received then, or later', parseInstant)
    .option('--to <time>', 'only what was first received before', parseInstant)
}

/** @throws {LatchkeyError} `usage` */
export function checkEventFilter({ options: { from, to } }: { readonly options: EventFilterOptions }): void {
  if (from !== undefined && to !== undefined && from > to)
    throw new LatchkeyError('usage', '--from is later than --to')
}

/** The filter as the API takes it, but for the environment. */
export function filterOf({ type, disposition, customer, endpoint, from, to }: EventFilterOptions) {
  const time = (instant: number | undefined) =>
    instant === undefined ? undefined : new Date(instant).toISOString()
  return { type, disposition, customerId: customer, endpoint, from: time(from), to: time(to) }
}

/** Says of an endpoint that the API does not know that the command was given wrongly. */
export async function knowingEndpoint<T>(options: EventFilterOptions, asking: Promise<T>): Promise<T> {
  return asking.catch((error: unknown) => {
    const isRefused = isLatchkeyError(error, 'invalid_request')
    const issue = isRefused && error.issues.find(({ path }) => /^(filter\.)?endpoint$/.test(path))
    if (!issue) throw error
    throw new LatchkeyError('usage', `the endpoint ${JSON.stringify(options.endpoint)} ${issue.message}`)
  })
}

type EventQuery = Partial<Record<keyof ReturnType<typeof filterOf> | 'environment', string | undefined>>

/** As many as the API lists at once. */
const PAGE_SIZE = 100

/** The newest events that match; `next`: the cursor of those before, or null. A page of the API may be short, and not the last. */
export async function findEvents(
  api: Api,
  query: EventQuery,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | null },
): Promise<{ readonly items: readonly StoredEventJson[]; readonly next: string | null }> {
  const items: StoredEventJson[] = []
  let next = cursor
  do {
    const page = await api.get<{
      readonly items: readonly StoredEventJson[]
      readonly pagination: { readonly nextCursor: string | null }
    }>('/events', { ...query, limit: Math.min(PAGE_SIZE, limit - items.length), cursor: next })
    items.push(...page.items)
    next = page.pagination.nextCursor
  } while (next !== null && items.length < limit)
  return { items, next }
}

/** Notes where no event was found whether that is for the environment, or for a slip in the type. */
export async function noteNothingFound(
  options: EventFilterOptions,
  api: Api,
  { err }: CliContext,
): Promise<void> {
  const { environment } = api
  if (environment === undefined) return
  const isStored = async (query: EventQuery): Promise<boolean> =>
    findEvents(api, query, { limit: 1, cursor: null }).then(
      ({ items }) => items.length > 0,
      () => false,
    )
  const other = otherThan(environment)
  if (await isStored({ ...filterOf(options), environment: other })) {
    err(`note: such events are stored in ${other}: add --environment ${other}\n`)
    return
  }
  const { type } = options
  if (type !== undefined && !(await isStored({ type, environment })))
    err(`note: no event of the type ${JSON.stringify(type)} is stored${hintOf(type)}\n`)
}

/** What a legacy name is here, of which events are stored under that of today; else the name that is most like it. */
function hintOf(type: string): string {
  const canonical = new Map<string, string>(Object.entries(CANONICAL_TYPE_OF_V2)).get(type)
  if (canonical !== undefined) return ` by that name: it is ${canonical} here, of either generation`
  const nearest = nearestName(type, SAMPLE_TYPES.v3)
  return nearest === null || nearest === type ? '' : `; did you mean ${nearest}?`
}
