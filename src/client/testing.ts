/* A client for the tests of an app: it answers what the test has set up, and needs no daemon. */

import {
  type Access,
  accessIn,
  type Check,
  checkIn,
  type Entry,
  entryOf,
  NONE,
  staleCheck,
  UNKNOWN,
} from './cache.js'
import type { Change, Client, ClientOptions, Entitlement, Feature, Needed } from './client.js'
import { LatchkeyError } from './request.js'
import {
  createReport,
  invalid,
  refIn,
  validId,
  validNeeded,
  validPairs,
  validPathId,
  validWatch,
  type WatchOptions,
} from './valid.js'

export type { Client }
export { LatchkeyError }

export interface TestClientOptions extends Pick<ClientOptions, 'onUnavailable' | 'onUnknown'> {
  /** As in the config of the daemon: the products, and the features that each gives. */
  readonly products?: Readonly<Record<string, { readonly features?: readonly string[] }>>
  /** The id of the customer with each of your own references. */
  readonly references?: Readonly<Record<string, string>>
  /** Epoch milliseconds. Default `Date.now`, also where a test replaces it. */
  readonly now?: () => number
}

/** Each change that it is told goes to those who watch, and the next question is answered by it. */
export interface TestClient extends Client {
  /** Gives a customer a product, until a time or for good. */
  readonly grant: (
    customerId: string,
    productId: string,
    options?: { readonly until?: Date | string | null },
  ) => void
  readonly revoke: (customerId: string, productId: string) => void
  /** `false`: as if the daemon could not be asked. Changes reach the app when it is back. */
  readonly setAvailable: (isAvailable: boolean) => void
}

interface Grant {
  readonly customerId: string
  readonly productId: string
  readonly since: number
  readonly until: number | null
  readonly isRevoked: boolean
  readonly eventId: string
}

const ENVIRONMENT = 'sandbox'
const NO_CURSOR = 'This cursor is not from this client: start again without `after`.'
const NEVER_GRANTED = { active: false, status: 'none', since: null, until: null } as const

export function createTestClient({
  products = {},
  references = {},
  onUnavailable = 'throw',
  onUnknown,
  now,
}: TestClientOptions = {}): TestClient {
  // Looked up each time: fake timers replace it.
  const clock = (): number => (now ?? Date.now)()
  const report = createReport(onUnknown)
  const closing = new AbortController()
  const changes: Change[] = []
  /** The last of each customer and product. */
  let stored: readonly Grant[] = []
  /** What the app could see last; null: it sees what is stored. */
  let lastSeen: typeof stored | null = null
  let next = Promise.withResolvers<void>()

  const featuresOf = (productId: string): readonly string[] =>
    (products[productId]?.features ?? []).toSorted()

  function entryFor(customerId: string, from: typeof stored): Entry {
    const instant = clock()
    const entitlements = from
      .filter((grant) => grant.customerId === customerId)
      .map((grant) => entitlementOf(grant, instant))
      .sort((a, b) => (a.productId < b.productId ? -1 : 1))
    const ends = entitlements.flatMap(({ active, until }) => (active && until !== null ? until : []))
    const answer = {
      customerId,
      environment: ENVIRONMENT,
      asOf: iso(instant),
      validUntil: ends.sort()[0] ?? null,
      cursor: `test.${changes.length}`,
      entitlements,
      features: featuresIn(entitlements, featuresOf),
    } as const
    return entryOf(answer, instant)
  }

  function isKnown({ feature, productId }: Needed): boolean {
    if (feature !== undefined) return Object.keys(products).some((id) => featuresOf(id).includes(feature))
    return Object.hasOwn(products, productId) || stored.some((grant) => grant.productId === productId)
  }

  /** What the app knows of a customer while the daemon is away. @throws LatchkeyError */
  function lastKnown(customerId: string, seen: typeof stored): Entry | undefined {
    if (onUnavailable === 'throw')
      throw new LatchkeyError('unavailable', 'The test has made the daemon unavailable: setAvailable(false).')
    const isKnown = onUnavailable === 'stale' && seen.some((grant) => grant.customerId === customerId)
    return isKnown ? entryFor(customerId, seen) : undefined
  }

  /** As the daemon, whose answers by reference the client does not keep. */
  function answerByRef(externalRef: string, needed: Needed): Check {
    // Of nobody, nothing is known.
    const customerId = Object.hasOwn(references, externalRef) ? (references[externalRef] ?? '') : ''
    return lastSeen === null ? answer(customerId, needed) : staleCheck(lastKnown(customerId, []), needed)
  }

  function answer(customerId: string, needed: Needed): Check {
    if (lastSeen !== null) return staleCheck(lastKnown(customerId, lastSeen), needed)
    const check = checkIn(entryFor(customerId, stored), needed)
    if (check !== undefined) return check
    if (isKnown(needed)) return NONE
    report(needed)
    return UNKNOWN
  }

  function change(
    customerId: string,
    productId: string,
    made: (eventId: string, before: Grant | undefined) => Omit<Grant, 'customerId' | 'productId'>,
  ) {
    validId(customerId)
    validNeeded({ productId })
    const instant = clock()
    const before = stored.find((grant) => grant.customerId === customerId && grant.productId === productId)
    const eventId = `man_test_${changes.length + 1}`
    const after = { customerId, productId, ...made(eventId, before) }
    stored = [...stored.filter((grant) => grant !== before), after]
    changes.push({
      cursor: `test.${changes.length + 1}`,
      at: iso(instant),
      environment: ENVIRONMENT,
      customerId,
      productId,
      before: before === undefined ? NEVER_GRANTED : snapshotOf(before, instant),
      after: snapshotOf(after, instant),
      features: [...featuresOf(productId)],
      cause: { kind: 'event', eventId },
    })
    wake()
  }

  function wake(): void {
    next.resolve()
    next = Promise.withResolvers()
  }
  closing.signal.addEventListener('abort', wake)

  return {
    async check(customer, needed) {
      validNeeded(needed)
      const externalRef = refIn(customer)
      return externalRef === null
        ? answer(validPathId(customer as string), needed)
        : answerByRef(externalRef, needed)
    },
    async list(customerId): Promise<Access> {
      validPathId(customerId)
      if (lastSeen === null) return accessIn(customerId, entryFor(customerId, stored), false)
      return accessIn(customerId, lastKnown(customerId, lastSeen), true)
    },
    async checkMany(pairs) {
      return validPairs(pairs).map((pair) =>
        pair.customerId === undefined ? answerByRef(pair.externalRef, pair) : answer(pair.customerId, pair),
      )
    },
    async watch(handler, { signal, after = null }: WatchOptions = {}) {
      validWatch(handler, after)
      let place = after === null ? changes.length : changes.findIndex(({ cursor }) => cursor === after) + 1
      if (place === 0 && after !== null && after !== 'test.0')
        throw new LatchkeyError('cursor_reset', NO_CURSOR)
      const isOver = () => closing.signal.aborted || signal?.aborted === true
      signal?.addEventListener('abort', wake)
      while (!isOver()) {
        const one = lastSeen === null ? changes[place] : undefined
        if (one === undefined) {
          await next.promise
        } else {
          await handler(one)
          place += 1
        }
      }
      signal?.removeEventListener('abort', wake)
    },
    close: () => closing.abort(),

    grant(customerId, productId, { until = null } = {}) {
      const instant = clock()
      const end = until === null ? null : new Date(until).getTime()
      if (Number.isNaN(end)) throw invalid('grant: `until` must be a date.')
      change(customerId, productId, (eventId, before) =>
        before !== undefined && isActive(before, instant)
          ? { ...before, until: end }
          : { since: instant, until: end, isRevoked: false, eventId },
      )
    },
    revoke(customerId, productId) {
      const instant = clock()
      change(customerId, productId, (eventId, before) => {
        if (before !== undefined && isActive(before, instant))
          return { ...before, until: instant, isRevoked: true, eventId }
        throw invalid(`revoke: ${customerId} does not have ${productId}. Grant it first.`)
      })
    },
    setAvailable(isAvailable) {
      lastSeen = isAvailable ? null : (lastSeen ?? stored)
      wake()
    },
  }
}

function isActive({ until }: Grant, instant: number): boolean {
  return until === null || instant < until
}

function iso(instant: number): string {
  return new Date(instant).toISOString()
}

function snapshotOf(grant: Grant, instant: number): Change['after'] {
  const active = isActive(grant, instant)
  const ended = grant.isRevoked ? 'revoked' : 'completed'
  return {
    active,
    status: active ? (grant.until === null ? 'active' : 'ending') : ended,
    since: active ? iso(grant.since) : null,
    until: grant.until === null ? null : iso(grant.until),
  }
}

/** As the daemon shows a product that was granted by hand. */
function entitlementOf(grant: Grant, instant: number): Entitlement {
  const { status, ...times } = snapshotOf(grant, instant)
  const { customerId, productId } = grant
  const source = {
    id: `${customerId}/${productId}`,
    kind: 'manual',
    ...times,
    rail: 'unknown',
    pastDue: false,
    cancelAtPeriodEnd: false,
    periodEnd: null,
    reason: grant.until === null ? null : grant.isRevoked ? 'revoked' : 'completed',
    eventId: grant.eventId,
  } as const
  return { productId, status, ...times, pastDue: false, sources: [source] }
}

/** By the products with access, or, if there is none, by those that had it. */
function featuresIn(
  entitlements: readonly Entitlement[],
  featuresOf: (productId: string) => readonly string[],
): Feature[] {
  const given = entitlements.flatMap((one) => featuresOf(one.productId).map((id) => ({ id, one })))
  return [...Map.groupBy(given, ({ id }) => id)]
    .map(([id, own]) => {
      const active = own.filter(({ one }) => one.active)
      const counted = (active.length > 0 ? active : own).map(({ one }) => one)
      const ends = counted.map(({ until }) => until)
      return {
        id,
        active: active.length > 0,
        until: ends.includes(null) ? null : (ends.sort().at(-1) ?? null),
        productIds: counted.map(({ productId }) => productId),
      }
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}
