import type { Kysely, Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { isLatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { loadActsOn, NO_ACTS } from '../store/acts-on-customers.js'
import { loadEntitlements } from '../store/entitlements.js'
import { ENVIRONMENTS } from '../store/environments.js'
import type { Database } from '../store/schema.js'
import { loadNextSources, type SourceStep, WALK_START, type WalkPlace } from '../store/source-walk.js'
import { loadSourcelessOtherwise } from '../store/sourceless-events.js'
import { loadSourcesOfCustomers } from '../store/sources.js'
import { eachCustomers } from './each-customer.js'
import { foldWhole } from './fold-anew.js'
import { accessFrom, differs } from './save-access.js'
import { sourcelessOutcomesUnder } from './sourceless-outcomes.js'
import { findMisplaced } from './verify-links.js'

/** Something that does not stand as folding everything from nothing would have it. */
export interface StateDifference {
  readonly environment: Environment
  readonly kind: 'source' | 'link' | 'place' | 'disposition' | 'entitlement'
  /** `subscription sub_1`, the payment's id of a `link`, an event's id, or `cus_1 pro_1`. */
  readonly id: string
}

/** Read in one transaction: bounds the memory. */
const EVENTS_AT_ONCE = 1_000

/**
 * Compares what stands with what all stored events come to under the policy in force. Changes nothing. A source with an
 * event that can't be read stands otherwise, whatever it is.
 * @param clock epoch milliseconds, asked all along: a daemon beside it goes on writing down what time changes
 * @throws {LatchkeyError} `store_unavailable` where something done by hand can't be read
 */
export async function* stateDifferences(
  db: Kysely<Database>,
  policy: Policy,
  clock: () => number,
): AsyncGenerator<StateDifference> {
  const stepFrom = (place: WalkPlace): Promise<CheckedStep | null> =>
    db.transaction().execute((trx) => checkNextSources(trx, place))
  let step = await stepFrom(WALK_START)
  while (step !== null) {
    yield* step.misplaced
    for (const [environment, whole] of step.sources) {
      for (const { key, unreadable } of whole) {
        if (unreadable !== null) yield { environment, kind: 'source', id: `${key.kind} ${key.id}` }
      }
      const readable = whole.filter(({ unreadable }) => unreadable === null)
      const { sources, dispositions } = foldWhole(readable, policy)
      for (const { key } of sources) yield { environment, kind: 'source', id: `${key.kind} ${key.id}` }
      for (const { eventId } of dispositions) yield { environment, kind: 'disposition', id: eventId }
    }
    step = await stepFrom(step.place)
  }
  yield* sourcelessDifferences(db, policy)
  for (const environment of ENVIRONMENTS) yield* entitlementDifferences(db, environment, clock)
}

interface CheckedStep extends SourceStep {
  readonly misplaced: readonly StateDifference[]
}

/** In one transaction: a delivery between would put events elsewhere. */
async function checkNextSources(trx: Transaction<Database>, place: WalkPlace): Promise<CheckedStep | null> {
  const step = await loadNextSources(trx, place, EVENTS_AT_ONCE)
  if (step === null) return null
  const misplaced: StateDifference[] = []
  for (const [environment, whole] of step.sources) {
    const { paymentIds, eventIds } = await findMisplaced(trx, environment, whole)
    for (const id of paymentIds) misplaced.push({ environment, kind: 'link', id })
    for (const id of eventIds) misplaced.push({ environment, kind: 'place', id })
  }
  return { ...step, misplaced }
}

/** What is said of events that belong to no source. */
async function* sourcelessDifferences(db: Kysely<Database>, policy: Policy): AsyncGenerator<StateDifference> {
  for (const { environment, eventId } of await loadSourcelessOtherwise(db, sourcelessOutcomesUnder(policy))) {
    yield { environment, kind: 'disposition', id: eventId }
  }
}

/** What is written down of each customer, against the customer's sources. */
function entitlementDifferences(
  db: Kysely<Database>,
  environment: Environment,
  clock: () => number,
): AsyncGenerator<StateDifference> {
  return eachCustomers(db, environment, async (trx, customerIds) => {
    try {
      return await compareAccess(trx, environment, customerIds, clock)
    } catch (error) {
      if (!isUnreadable(error)) throw error
      const found: StateDifference[] = []
      for (const id of customerIds) found.push(...(await compareReadable(trx, environment, id, clock)))
      return found
    }
  })
}

/** Nothing of somebody with a source that can't be read: that one is named already. */
async function compareReadable(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
  clock: () => number,
): Promise<readonly StateDifference[]> {
  try {
    return await compareAccess(trx, environment, [customerId], clock)
  } catch (error) {
    if (!isUnreadable(error)) throw error
    // What was done by hand may belong to no source: then nothing has named it.
    await loadActsOn(trx, environment, [customerId])
    return []
  }
}

const isUnreadable = (error: unknown): boolean => isLatchkeyError(error, 'store_unavailable')

async function compareAccess(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
  clock: () => number,
): Promise<readonly StateDifference[]> {
  const sources = await loadSourcesOfCustomers(trx, environment, customerIds)
  const acts = await loadActsOn(trx, environment, customerIds)
  const stored = await loadEntitlements(trx, environment, customerIds)
  // Not before they are read: what they say was written at some time until now.
  const now = clock()
  return customerIds.flatMap((customerId) => {
    const written = new Map((stored.get(customerId) ?? []).map((record) => [record.productId, record]))
    const own = sources.get(customerId) ?? []
    const access = accessFrom(own, acts.get(customerId) ?? NO_ACTS, { customerId, now })
    const is = new Map(access.map((record) => [record.productId, record]))
    return [...new Set([...written.keys(), ...is.keys()])].flatMap((productId) => {
      const record = written.get(productId)
      // The clock has changed it since; that is written down within the minute.
      if (record?.nextChangeAt != null && record.nextChangeAt <= now) return []
      if (!differs(record, is.get(productId))) return []
      return [{ environment, kind: 'entitlement' as const, id: `${customerId} ${productId}` }]
    })
  })
}
