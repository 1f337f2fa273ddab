import type { IncomingMessage } from 'node:http'
import type {
  BodyRemoval,
  EventFilter,
  StoredEvent,
  StoredEventDetail,
} from '../entitlements/stored-event.js'
import { LatchkeyError } from '../errors.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import type { Authenticate } from './authenticate.js'
import { readEnvironment } from './environment.js'
import { readQuery } from './query.js'

interface OneEvent {
  readonly environment: Environment
  readonly eventId: string
}

/** What the routes about stored events need. All reject with `store_unavailable` where the store can't tell. */
export interface StoredEventQuestions {
  /**
   * Newest first, at most `limit`, from what arrived before `before` (null: up to the newest). `next` is the
   * `before` of the next page, or null; a page with few events or none may still have a next one.
   */
  readonly readEventPage: (question: {
    readonly filter: EventFilter
    readonly before: number | null
    readonly limit: number
  }) => Promise<{ readonly items: readonly StoredEvent[]; readonly next: number | null }>
  /** Null where no such event is stored. */
  readonly readEvent: (question: OneEvent) => Promise<StoredEventDetail | null>
  /**
   * `sha256`: which of the bodies that came under the id; null: the one that stands. It answers with the hash of the
   * bytes that it gives.
   */
  readonly readEventBody: (question: OneEvent & { readonly sha256: string | null }) => Promise<{
    readonly sha256: string
    readonly bytes: Buffer | null
    readonly removed: BodyRemoval | null
  } | null>
}

export interface StoredEventDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  /** Through which events may come today, by hand included; asked each time as well. */
  readonly endpointNames: () => readonly string[]
  readonly endpointNamed: (name: string) => Endpoint | undefined
  readonly storedEvents: StoredEventQuestions
}

/**
 * Sees that the request's key has the right to see stored events, and of which environment. `known`: the parameters
 * that the route takes.
 *
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`.
 */
export function readQuestion(
  req: IncomingMessage,
  { authenticate, environments }: StoredEventDeps,
  known: readonly string[],
): { readonly environment: Environment; readonly query: URLSearchParams } {
  const key = authenticate(req, 'events')
  const query = readQuery(req, known)
  return { environment: readEnvironment(query, environments(), key), query }
}

export function eventNotFound(): LatchkeyError {
  return new LatchkeyError('event_not_found', 'No such event is stored in this environment.')
}
