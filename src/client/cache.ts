/* Answers about customers, kept in step by the change log. */

import type { components } from '../../openapi.js'
import { type Change, follow, SILENCE_MS } from './follow.js'
import { type Api, LatchkeyError, sleep } from './request.js'

export type CustomerAccess = components['schemas']['CustomerAccess']

/** The answer to `check`. */
export interface Check {
  readonly active: boolean
  /** The known end of access, past or coming; null: none is known. */
  readonly until: string | null
  /** The daemon can't be asked: this was its last answer. */
  readonly stale: boolean
  /** Why there is no answer; null: there is one. */
  readonly reason: 'unavailable' | null
  /** The daemon knows no such feature or product: perhaps the id is wrong. */
  readonly unknown: boolean
}

/** What a customer may need. */
export type Needed =
  | { readonly feature: string; readonly productId?: never }
  | { readonly productId: string; readonly feature?: never }

/** Whom a question is about: a customer of the payments service, or those who have your own reference. */
export type Person =
  | { readonly customerId: string; readonly externalRef?: never }
  | { readonly externalRef: string; readonly customerId?: never }

/** Everything that a customer may use. */
export interface Access extends Pick<CustomerAccess, 'customerId' | 'entitlements' | 'features'> {
  /** For `watch`: the answer holds every change up to here; null: there is no answer. */
  readonly cursor: string | null
  readonly stale: boolean
  readonly reason: Check['reason']
}

/** What the daemon said about a customer. */
export interface Entry {
  readonly answer: CustomerAccess
  /** When it was asked for: not after the instant that the answer is about. */
  readonly sentAt: number
  /** When it ends by itself; infinite if only a change can end it. */
  readonly goodUntil: number
  readonly products: ReadonlyMap<string, Check>
  readonly features: ReadonlyMap<string, Check>
}

interface KeptEntry extends Entry {
  /** Long ago if the stream may not deliver every change that follows. */
  readonly freshUntil: number
}

export function checkOf({
  active,
  until,
  unknown = false,
}: Pick<Check, 'active' | 'until'> & Partial<Check>): Check {
  return Object.freeze({ active, until, stale: false, reason: null, unknown })
}

export const NONE = checkOf({ active: false, until: null })
/** There is no answer. */
const DENIED: Check = Object.freeze({ ...NONE, reason: 'unavailable' })
export const UNKNOWN = checkOf({ ...NONE, unknown: true })

export function entryOf(answer: CustomerAccess, sentAt: number): Entry {
  const { asOf, validUntil } = answer
  return {
    answer,
    sentAt,
    goodUntil: validUntil === null ? Infinity : sentAt + Date.parse(validUntil) - Date.parse(asOf),
    products: new Map(answer.entitlements.map((one) => [one.productId, checkOf(one)])),
    features: new Map(answer.features.map((one) => [one.id, checkOf(one)])),
  }
}

/** Undefined: the answer does not list it. */
export function checkIn({ features, products }: Entry, { feature, productId }: Needed): Check | undefined {
  return feature === undefined ? products.get(productId) : features.get(feature)
}

/** While the daemon can't be asked. @param known undefined: nothing is known about the customer */
export function staleCheck(known: Entry | undefined, needed: Needed): Check {
  return known === undefined ? DENIED : { ...(checkIn(known, needed) ?? NONE), stale: true }
}

/** @param entry undefined: nothing is known about the customer */
export function accessIn(customerId: string, entry: Entry | undefined, stale: boolean): Access {
  if (entry === undefined)
    return { customerId, entitlements: [], features: [], cursor: null, stale: false, reason: 'unavailable' }
  const { entitlements, features, cursor } = entry.answer
  // A copy: callers may sort it, and the original is kept.
  return structuredClone({ customerId, entitlements, features, cursor, stale, reason: null })
}

const LONG_AGO = -Infinity

/**
 * Keeps the answers about up to `maxCustomers` customers. One is fresh while three things hold:
 *
 * - Neither `validUntil` nor `maxAgeMs` is over, counted from the instant at which it was asked for.
 * - The stream has proved within SILENCE_MS that it has delivered all changes.
 * - When it was asked for, the stream had a place in the log; it is not from before that place; and no change of this
 *   customer has come since. So each later change is still to come on the stream, and drops it.
 *
 * The proof is the daemon's comment, which names the instant that it covers: a comment that was held up on its way
 * proves nothing about the time since.
 */
export function createCache(api: Api, maxCustomers: number, maxAgeMs: number, closing: AbortSignal) {
  const { now } = api
  // Two halves, and the older is dropped whole: deleting a map's first key walks all keys deleted before it.
  let kept = new Map<string, KeptEntry>()
  let older = new Map<string, KeptEntry>()
  /** Questions on their way, but for those that a change of the customer may have outdated. */
  const flights = new Map<string, Promise<Entry>>()
  let isFollowing = false
  /** How far the stream has come; null: it has not begun. */
  let place: string | null = null
  /** Everything stored up to here was delivered. */
  let completeAt = LONG_AGO
  let openedAt = LONG_AGO
  let cut = (): void => {}

  function clear(): void {
    kept.clear()
    older.clear()
    flights.clear()
    place = null
  }

  function take({ customerId, cursor }: Change): void {
    flights.delete(customerId)
    const entry = kept.get(customerId) ?? older.get(customerId)
    if (entry === undefined || isNotBefore(entry.answer.cursor, cursor)) return
    kept.delete(customerId)
    older.delete(customerId)
  }

  function keep(customerId: string, entry: Entry, sentFrom: string | null): void {
    if (maxCustomers === 0 || (sentFrom !== null && !isNotBefore(entry.answer.cursor, sentFrom))) return
    if (kept.size >= maxCustomers / 2 && !kept.has(customerId)) {
      older = kept
      kept = new Map()
    }
    const freshUntil = sentFrom === null ? LONG_AGO : Math.min(entry.goodUntil, entry.sentAt + maxAgeMs)
    kept.set(customerId, { ...entry, freshUntil })
  }

  function send(customerId: string): Promise<Entry> {
    const sentFrom = place
    const read = (json: unknown, sentAt: number): Entry | null => {
      const entry = entryOf(json as CustomerAccess, sentAt)
      return api.isOwn(entry.answer) && now() < entry.goodUntil ? entry : null
    }
    // What the daemon has kept does not say how far in the log it is right.
    const headers: Record<string, string> = maxCustomers === 0 ? {} : { 'Cache-Control': 'max-age=0' }
    const flight: Promise<Entry> = api
      .ask(`/entitlements/${encodeURIComponent(customerId)}`, { headers }, read)
      .then((entry) => {
        // Not before: without an answer the stream could be that of another environment.
        if (maxCustomers > 0 && !isFollowing) void keepFollowing()
        if (flights.get(customerId) === flight) keep(customerId, entry, sentFrom)
        return entry
      })
      .finally(() => {
        if (flights.get(customerId) === flight) flights.delete(customerId)
      })
    flights.set(customerId, flight)
    return flight
  }

  async function keepInStep(): Promise<void> {
    for await (const event of follow(api, place, closing)) {
      if (event.kind === 'opening') {
        openedAt = now()
        cut = event.cut
      } else if (event.kind === 'place') {
        place = event.cursor
      } else if (event.kind === 'change') {
        take(event.change)
        place = event.change.cursor
      } else if (event.kind === 'complete') {
        // The request was sent before the daemon began to count.
        completeAt = openedAt + event.afterMs
        api.catchUp(completeAt)
      } else {
        completeAt = LONG_AGO
      }
    }
  }

  async function keepFollowing(): Promise<void> {
    isFollowing = true
    while (!closing.aborted) {
      await keepInStep().catch(async (error: unknown) => {
        completeAt = LONG_AGO
        // The store was replaced: what is known is of another one.
        if (error instanceof LatchkeyError && error.code === 'cursor_reset') clear()
        // Questions fail for the same reason, and say so. The key may be let in again.
        else await sleep(api.backoff(0, SILENCE_MS, SILENCE_MS), closing)
      })
    }
  }

  return {
    /** A fresh answer. */
    find(customerId: string): Entry | undefined {
      const entry = kept.get(customerId) ?? older.get(customerId)
      if (entry === undefined || closing.aborted) return undefined
      const instant = now()
      return instant < entry.freshUntil && instant - completeAt <= SILENCE_MS ? entry : undefined
    },
    /** The last answer that no change is known to have outdated, until it ends by itself. */
    findStale(customerId: string): Entry | undefined {
      const entry = kept.get(customerId) ?? older.get(customerId)
      return entry !== undefined && now() < entry.goodUntil ? entry : undefined
    },
    /** @throws LatchkeyError */
    ask(customerId: string): Promise<Entry> {
      // After the machine slept, the connection is most likely gone, and no timer has noticed.
      if (now() - Math.max(openedAt, completeAt) > SILENCE_MS) cut()
      return flights.get(customerId) ?? send(customerId)
    },
  }
}

/** Whether one place in the change log is at or after another; false for places of two logs. */
function isNotBefore(cursor: string, other: string): boolean {
  const [log, number] = partsOf(cursor)
  const [otherLog, otherNumber] = partsOf(other)
  return log === otherLog && number >= otherNumber
}

/** The name of a change log, and a number that grows. Of any other form: NaN, which is not after anything. */
function partsOf(cursor: string): readonly [string, number] {
  const dot = cursor.lastIndexOf('.')
  return [cursor.slice(0, dot), Number(cursor.slice(dot + 1))]
}
