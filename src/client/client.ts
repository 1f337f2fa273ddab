/* The client for apps: asks the daemon who may use what, and keeps the answers for as long as they are right. */

import type { components } from '../../openapi.js'
import { withBreaker } from './breaker.js'
import {
  type Access,
  accessIn,
  type Check,
  type CustomerAccess,
  checkIn,
  checkOf,
  createCache,
  type Entry,
  type Needed,
  NONE,
  type Person,
  staleCheck,
  UNKNOWN,
} from './cache.js'
import { type Change, follow } from './follow.js'
import { createApi, isUnavailable, LatchkeyError } from './request.js'
import {
  type ClientOptions,
  createReport,
  IDS_REMEMBERED,
  nameOf,
  refIn,
  validNeeded,
  validOptions,
  validPairs,
  validPathId,
  validWatch,
  type WatchOptions,
} from './valid.js'

export type { Access, Change, Check, ClientOptions, CustomerAccess, Needed, Person, WatchOptions }
export { LatchkeyError }
export type Entitlement = components['schemas']['Entitlement']
export type Feature = components['schemas']['Feature']

/**
 * `check`, `list` and `checkMany` answer what was true at some instant between the question and its answer, but for
 * what the cache says, and questions about one customer that are asked at once, which share an answer. These are never
 * active
 *
 * - 5 ms after an end of access that was known when the daemon was asked, however the clocks of this machine are set:
 *   ages are measured from the instant at which the question was sent. Only if no clock shows that time has passed, as
 *   after a pause of a virtual machine, or a sleep in which the clock was set back, it may be later by that time, until
 *   the stream makes up for it: with its next comment, or, if it had to connect again, with the change by which the
 *   daemon writes down the end;
 * - after an end by a change that the stream has delivered;
 * - 20 seconds after any change, also if the stream is silent or held up on its way; at once if the stream is cut. Where
 *   there is no stream, `timeout` after it.
 *
 * What the change log does not say, such as a feature that a product no longer gives, is noticed within `maxAge`.
 * Under `onUnavailable: 'stale'` only the first two hold while the daemon can't be asked.
 */
export type Client = ReturnType<typeof createClient>

/** `POST /entitlements/check` takes 1,000 in 1 MiB; of the longest ids, only so many fit for certain. */
const CHECKS_AT_ONCE = 500
const JSON_TYPE = { 'Content-Type': 'application/json' }

/** @throws LatchkeyError `invalid_options` */
export function createClient(options: ClientOptions) {
  const {
    onUnavailable = 'throw',
    maxCustomers = 10_000,
    maxAge = 60_000,
    onUnknown,
    ...rest
  } = validOptions(options)
  const closing = new AbortController()
  const api = withBreaker(createApi(rest), closing.signal)
  const cache = createCache(api, maxCustomers, maxAge, closing.signal)

  /** What is known of a customer although the daemon can't be asked; throws what is not about that, or as declared. */
  function lastKnown(error: unknown, customerId: string | undefined): Entry | undefined {
    if (onUnavailable === 'throw' || !isUnavailable(error)) throw error
    const isKept = onUnavailable === 'stale' && customerId !== undefined
    return isKept ? cache.findStale(customerId) : undefined
  }

  /** By feature or product: the answer for customers whose access does not list it. */
  const verdicts = new Map<string, { readonly check: Promise<Check>; readonly goodUntil: number }>()
  const report = createReport(onUnknown)

  /** Not listed: the daemon is asked once, for all customers, whether it knows the id at all. */
  function checkMissing(customerId: string, needed: Needed): Promise<Check> {
    const name = nameOf(needed)
    const known = verdicts.get(name)
    if (known !== undefined && api.now() < known.goodUntil) return known.check
    if (verdicts.size >= IDS_REMEMBERED) verdicts.clear()
    const check = askMany([{ customerId, ...needed }]).then(
      ([answer]) => (answer?.unknown ? UNKNOWN : NONE),
      // The question itself has its answer, and must not fail because of this one.
      () => NONE,
    )
    verdicts.set(name, { check, goodUntil: api.now() + maxAge })
    return check
  }

  async function checkAsked(customerId: string, needed: Needed): Promise<Check> {
    try {
      const entry = await cache.ask(validPathId(customerId))
      return checkIn(entry, needed) ?? (await checkMissing(customerId, needed))
    } catch (error) {
      return staleCheck(lastKnown(error, customerId), needed)
    }
  }

  async function askMany(pairs: readonly (Needed & Person)[]) {
    const checks = pairs.map(({ customerId, externalRef, feature, productId }) => {
      return { customerId, externalRef, feature, productId }
    })
    const init = { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ checks }) }
    try {
      const answers = await api.ask('/entitlements/check', init, (json) =>
        (json as { readonly results: readonly Pick<Check, 'active' | 'until'>[] }).results.map(checkOf),
      )
      for (const [at, pair] of pairs.entries()) if (answers[at]?.unknown) report(pair)
      return answers
    } catch (error) {
      return pairs.map((pair) => staleCheck(lastKnown(error, pair.customerId), pair))
    }
  }

  return {
    /**
     * Whether a customer has a feature or a product. By your own reference, the daemon is asked each time: who has it may
     * change. Of several customers who share it, the one whose access lasts longest answers.
     * @throws LatchkeyError
     */
    async check(customer: string | { readonly externalRef: string }, needed: Needed): Promise<Check> {
      validNeeded(needed)
      const externalRef = refIn(customer)
      if (externalRef !== null) return (await askMany([{ externalRef, ...needed }]))[0] ?? NONE
      const customerId = customer as string
      const entry = cache.find(customerId)
      return entry === undefined
        ? checkAsked(customerId, needed)
        : (checkIn(entry, needed) ?? checkMissing(customerId, needed))
    },

    /** Everything that a customer may use. @throws LatchkeyError */
    async list(customerId: string): Promise<Access> {
      try {
        const entry = cache.find(customerId) ?? (await cache.ask(validPathId(customerId)))
        return accessIn(customerId, entry, false)
      } catch (error) {
        return accessIn(customerId, lastKnown(error, customerId), true)
      }
    },

    /** Many at once, answered in order: what the cache does not know, with one request for 500. @throws LatchkeyError */
    async checkMany(pairs: readonly (Needed & Person)[]): Promise<readonly Check[]> {
      const answers = validPairs(pairs).map((pair) => {
        if (pair.customerId === undefined) return null
        const entry = cache.find(pair.customerId)
        return entry === undefined ? null : (checkIn(entry, pair) ?? checkMissing(pair.customerId, pair))
      })
      const open = pairs.filter((_, at) => answers[at] === null)
      const asked: Check[] = []
      for (let from = 0; from < open.length; from += CHECKS_AT_ONCE) {
        asked.push(...(await askMany(open.slice(from, from + CHECKS_AT_ONCE))))
      }
      const rest = asked.values()
      return Promise.all(answers.map((answer) => answer ?? rest.next().value ?? NONE))
    },

    /**
     * Hands each change of access to `handler`, in the order of the change log, each once: the next when it has resolved,
     * and across broken connections and restarts of the daemon. Ends when `signal` aborts or the client is closed, and
     * rejects with what the handler throws. To go on in another process, keep the `cursor` of the last change.
     * @throws LatchkeyError `cursor_reset`: the store was replaced; ask again for what you keep, and begin without `after`
     */
    async watch(
      handler: (change: Change) => unknown,
      { signal, after = null }: WatchOptions = {},
    ): Promise<void> {
      validWatch(handler, after)
      const ends = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal])
      for await (const event of follow(api, after, ends)) {
        if (ends.aborted) return
        if (event.kind === 'change') await handler(event.change)
      }
    },

    /** Ends the stream and every watch, so that the process can end. Later questions all go to the daemon. */
    close(): void {
      closing.abort()
    },
  }
}
