import type { EventFilter } from '../entitlements/stored-event.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import { endsBeforeItBegins, LATER_THAN_TO } from './filter-order.js'
import { invalidParameter, readInstant, readParameter } from './query.js'

/** What a stored event can be; a duplicate is not stored again. */
export const STORED_DISPOSITIONS = ['applied', 'ignored', 'held', 'quarantined'] as const

/** What says which events a request means. */
export const FILTER_PARAMETERS = [
  'environment',
  'disposition',
  'type',
  'customerId',
  'endpoint',
  'from',
  'to',
] as const

/**
 * Which stored events a request means.
 *
 * @throws LatchkeyError `invalid_request` for a value that no event can have, and for an end ahead of the beginning.
 */
export function readEventFilter(query: URLSearchParams, environment: Environment): EventFilter {
  const filter = {
    environment,
    disposition: readDisposition(query),
    type: readWord(query, 'type'),
    customerId: readWord(query, 'customerId'),
    endpoint: readWord(query, 'endpoint'),
    from: readInstant(query, 'from'),
    to: readInstant(query, 'to'),
  }
  if (endsBeforeItBegins(filter)) throw invalidParameter('from', LATER_THAN_TO)
  return filter
}

function readDisposition(query: URLSearchParams): EventFilter['disposition'] {
  const text = readParameter(query, 'disposition')
  const disposition = STORED_DISPOSITIONS.find((one) => one === text)
  if (text !== null && disposition === undefined) {
    throw invalidParameter('disposition', `is none of ${STORED_DISPOSITIONS.join(', ')}`)
  }
  return disposition ?? null
}

function readWord(query: URLSearchParams, name: string): string | null {
  const text = readParameter(query, name)
  if (text !== null && !isUsableId(text)) {
    throw invalidParameter(name, 'is not a text of 1 to 255 characters without control characters')
  }
  return text
}
