import {
  CompiledQuery,
  type Kysely,
  type KyselyPlugin,
  type RootOperationNode,
  type Transaction,
} from 'kysely'
import { describe, expect, it } from 'vitest'
import { NEVER_GRANTED } from '../../src/entitlements/entitlement.js'
import { readAccesses, readProductCustomers } from '../../src/store/access.js'
import { loadAccount } from '../../src/store/account.js'
import { summarizeChanges } from '../../src/store/change-summary.js'
import { appendChanges, latestCursor, loadChanges, loadChangesOfTime } from '../../src/store/changes.js'
import { searchCustomers } from '../../src/store/customer-search.js'
import {
  findCustomers,
  findCustomersByReference,
  findCustomersByReferences,
  loadCustomers,
  loadReferences,
  saveCustomers,
} from '../../src/store/customers.js'
import { deleteEntitlements, knownProducts, loadDue, loadEntitlements } from '../../src/store/entitlements.js'
import { forgetPerson, loadErasure, loadSeqsOfPerson, loadStoredBodies } from '../../src/store/erasures.js'
import {
  compareBodies,
  countWaiting,
  readEvent,
  readEventBody,
  readEventPage,
} from '../../src/store/event-questions.js'
import { scanEventHeaders } from '../../src/store/event-walk.js'
import {
  insertEvents,
  loadManualEvents,
  loadStoredIds,
  placeEvents,
  recordDuplicates,
  setDispositions,
} from '../../src/store/events.js'
import { expireBodies, firstKeptBodyAt } from '../../src/store/expire-bodies.js'
import {
  countStates,
  findMemberships,
  loadDueMemberships,
  loadMemberships,
  nextDueAt,
} from '../../src/store/memberships.js'
import { readWebhookState } from '../../src/store/message-counters.js'
import { expireMessages, findMessages } from '../../src/store/message-log.js'
import {
  loadDueMessages,
  nextMessageAfter,
  recordOutcomes,
  replayMessages,
} from '../../src/store/message-queue.js'
import { loadGroupRows, loadGroupRowsBeyond, loadHistories, savePlaces } from '../../src/store/recompute.js'
import type { Database } from '../../src/store/schema.js'
import {
  deleteSources,
  loadLinks,
  loadSourceRows,
  loadSourceRowsOf,
  loadSources,
  loadSourcesOfCustomers,
} from '../../src/store/sources.js'
import { loadAccountHolders, markLinkedCustomers } from '../../src/store/sync-state.js'
import { isHeld } from '../../src/sync/bound.js'
import { subscriptionEvent } from '../entitlements/events.js'
import { everyEvent, NOON, newEvent } from './events.js'
import { temporaryStore } from './temporary-store.js'

const SOURCES = [
  { kind: 'payment', id: 'pay_1' },
  { kind: 'subscription', id: 'sub_1' },
] as const
const RECORDS = [
  { customerId: 'cus_1', productId: 'pro_1' },
  { customerId: 'cus_2', productId: 'pro_1' },
]
const MOVED = [1, 2].map((seq) => ({
  seq,
  source: SOURCES[0],
  disposition: 'applied' as const,
  reason: null,
}))
const REPLACED = [1, 2].map((seq) => ({
  row: { seq, event_id: `evt_${seq}` },
  reading: {
    eventId: `evt_${seq}`,
    event: null,
    source: null,
    disposition: 'applied' as const,
    reason: null,
  },
}))
const OUTCOMES = [
  { eventId: 'evt_1', disposition: 'applied', reason: null },
  { eventId: 'evt_2', disposition: 'applied', reason: null },
] as const
const MESSAGE_OUTCOMES = [1, 2].map((cursor) => ({
  cursor,
  webhook: 'crm',
  queuedAt: NOON,
  environment: 'live' as const,
  customerId: `cus_${cursor}`,
  log: [{ at: NOON, status: 204, error: null, ms: 1 }] as const,
  result: { kind: 'delivered' as const },
}))
const MESSAGE_PAGE = { order: 'newest first', limit: 10 } as const
const BOTH = ['cus_1', 'cus_2']
const LIVE = ['live'] as const
const PRODUCT_PAGE = { after: 'cus_1', limit: 10 } as const
const TARGET = { environment: 'live', target: 'discord:1:10' } as const
const EVENT = { environment: 'live', eventId: 'evt_1' } as const
const UNLINKED = BOTH.map((customerId) => ({ customerId, facts: {}, deletedAt: null }))
const KNOWN = new Map(
  UNLINKED.map((one) => [
    one.customerId,
    { ...one, facts: { communityId: { value: '1', at: NOON, by: 'evt_1' } } },
  ]),
)
const ACCOUNTS = ['1', '2'].map((accountId) => ({ fact: 'communityId' as const, accountId }))
const PLACE = { environment: 'live', fact: 'communityId', accountId: '1', customerId: '' } as const
const DELIVERIES = [newEvent(), newEvent(subscriptionEvent({ id: 'evt_2' }))]

describe('the cost of a query does not grow with the number of stored rows:', () => {
  it.each<[string, (db: Transaction<Database>) => Promise<unknown>]>([
    ['events by their numbers', (db) => loadGroupRows(db, [1, 2])],
    ['rows of sources', (db) => loadSourceRows(db, 'live', SOURCES)],
    ['rows of sources of customers', (db) => loadSourceRowsOf(db, 'live', BOTH)],
    ['a stretch of events', (db) => loadGroupRowsBeyond(db, 5, 15, 10)],
    ['where events belong', (db) => savePlaces(db, REPLACED)],
    ['places of events', (db) => placeEvents(db, MOVED)],
    ['dispositions', (db) => setDispositions(db, 'live', OUTCOMES)],
    ['duplicates', (db) => recordDuplicates(db, DELIVERIES, DELIVERIES)],
    ['ids of events', (db) => loadStoredIds(db, 'live', ['evt_1', 'evt_2'])],
    ['links of payments', (db) => loadLinks(db, 'live', ['pay_1', 'pay_2'])],
    ['sources', (db) => loadSources(db, 'live', SOURCES)],
    ['sources of customers', (db) => loadSourcesOfCustomers(db, 'live', BOTH)],
    ['deleting sources', (db) => deleteSources(db, 'live', SOURCES)],
    [
      'inputs of an answer',
      (db) => readAccesses(db, () => 0, { environment: 'live', customerIds: BOTH, at: null }),
    ],
    ['entitlements of customers', (db) => loadEntitlements(db, 'live', BOTH)],
    ['whether products are known', (db) => knownProducts(db, 'live', ['pro_1', 'pro_2'])],
    ['deleting entitlements', (db) => deleteEntitlements(db, 'live', RECORDS)],
    ['entitlements that are due', (db) => loadDue(db, NOON, 10)],
    ['customers', (db) => loadCustomers(db, 'live', BOTH)],
    ['customers by email', (db) => findCustomers(db, 'live', { name: 'email', value: 'a@example.com' })],
    ['customers by community', (db) => findCustomers(db, 'live', { name: 'communityId', value: '1' })],
    [
      'customers by reference',
      (db) => findCustomersByReference(db, 'live', { name: 'externalRef', value: 'a' }),
    ],
    ['customers by the beginning of what is known of them', searchEverywhere],
    ['what was done by hand to customers', (db) => loadManualEvents(db, 'live', BOTH)],
    ['all that explains one customer', (db) => loadAccount(db, 'live', 'cus_1', 'pro_1')],
    [
      'customers by many references',
      (db) => findCustomersByReferences(db, 'live', 'externalRef', ['a', 'b']),
    ],
    ['references of a customer', (db) => loadReferences(db, 'live', ['cus_1'])],
    ['customers with a product', (db) => readProductCustomers(db, () => 0, 'live', 'pro_1', PRODUCT_PAGE)],
    ['changes', (db) => loadChanges(db, 'live', 5, 10)],
    ['changes of a customer', (db) => loadChanges(db, 'live', 5, 10, { customerId: 'cus_1' })],
    ['changes of a stretch of time', (db) => loadChangesOfTime(db, 'live', 0, 10, { from: 1, to: NOON })],
    ['the changes up to a time', (db) => loadChangesOfTime(db, 'live', 0, 10, { to: NOON })],
    ['the next changes of a stretch of time', readChangesOfTime],
    [
      'changes of a customer in a stretch of time',
      (db) => loadChanges(db, 'live', 0, 10, { from: 1, to: NOON, customerId: 'cus_1' }),
    ],
    [
      'the changes of some days, counted',
      (db) => {
        const query = { environment: 'live', productId: 'pro_1', periods: [0], by: 'day' } as const
        return summarizeChanges(db, query)
      },
    ],
    ['messages that are due', (db) => loadDueMessages(db, 'crm', NOON, 10)],
    ['the next message', (db) => nextMessageAfter(db, 'crm', NOON)],
    ['the state of an outbound webhook', (db) => readWebhookState(db, 'crm', LIVE)],
    [
      'messages of a customer',
      (db) => findMessages(db, { environments: LIVE, customerId: 'cus_1' }, MESSAGE_PAGE),
    ],
    [
      'messages with a status',
      (db) => findMessages(db, { environments: LIVE, status: 'failed' }, MESSAGE_PAGE),
    ],
    ['a message', (db) => findMessages(db, { environments: LIVE, ids: ['msg_1f_7'] }, MESSAGE_PAGE)],
    ['messages to send again', (db) => replayMessages(db, MESSAGE_OUTCOMES, NOON)],
    ['old messages', (db) => expireMessages(db, NOON)],
    ['outcomes of messages', (db) => recordOutcomes(db, MESSAGE_OUTCOMES)],
    ['changes of access', (db) => loadChanges(db, null, 5, 10)],
    [
      'customers who lose an account, and those who share it',
      (db) => saveCustomers(db, 'live', KNOWN, UNLINKED),
    ],
    ['customers of accounts', (db) => loadAccountHolders(db, 'live', ACCOUNTS)],
    ['marking the next customers with an account', (db) => markLinkedCustomers(db, PLACE)],
    ['memberships of customers', (db) => findMemberships(db, { environments: LIVE, customerIds: BOTH })],
    ['memberships of accounts', (db) => findMemberships(db, { environments: LIVE, accountIds: ['1', '2'] })],
    ['memberships', (db) => loadMemberships(db, [{ ...TARGET, accountId: '1' }])],
    ['memberships to give', (db) => loadDueMemberships(db, TARGET, 'give', NOON, 10)],
    ['memberships to take', (db) => loadDueMemberships(db, TARGET, 'take', NOON, 10)],
    ['memberships to take by agreement', (db) => loadDueMemberships(db, TARGET, 'agreedTake', NOON, 10)],
    ['memberships to ask about', (db) => loadDueMemberships(db, TARGET, 'recheck', NOON, 10)],
    [
      'memberships of a target',
      (db) => findMemberships(db, { environments: LIVE, target: 'discord:1:10' }, 10),
    ],
    ['when memberships come due', (db) => nextDueAt(db, TARGET, true)],
    ['removals', (db) => isHeld(db, TARGET, { atMost: 1, percent: 1 }, NOON)],
    ['states of memberships', (db) => countStates(db, TARGET)],
    [
      'events of a person without a source',
      (db) => loadSeqsOfPerson(db, { environment: 'live', customerId: 'cus_1' }),
    ],
    ['bodies of events', (db) => loadStoredBodies(db, [1, 2])],
    ['an erasure', (db) => loadErasure(db, 'live', 'cus_1')],
    ['forgetting a person', (db) => forgetPerson(db, 'live', 'cus_1')],
    ['removing old bodies, and those of what waits no more', expireOneAndMore],
    ['the first body that is kept', firstKeptBodyAt],
    ['one stored event', (db) => readEvent(db, EVENT)],
    ['the bytes of an event', (db) => readEventBody(db, EVENT, null)],
    ['another body of an event', (db) => readEventBody(db, EVENT, '00')],
    ['a page of events', readOneOnPage],
    ['events of a payment', (db) => readPageOf(db, { paymentId: 'pay_1' })],
    ['events of a subscription', (db) => readPageOf(db, { subscriptionId: 'sub_1' })],
  ])('%s', async (_what, query) => {
    const steps = await planOf(query)
    expect(steps.filter((step) => step.startsWith('SEARCH'))).not.toEqual([])
    // A whole table, or all of one environment.
    const whole =
      /^SCAN (events|payment_links|sources|entitlements|customers|customer_references|customer_lookups|changes|messages)|\(environment=\?\)/
    expect(steps.filter((step) => whole.test(step))).toEqual([])
  })

  it('a step through all sources', async () => {
    expect(await planOf((db) => loadHistories(db, 0, 10))).toEqual([
      'SEARCH sources USING INTEGER PRIMARY KEY (rowid>?)',
    ])
  })

  it.each(['newest first', 'oldest first'] as const)('a step through the events, %s', async (order) => {
    const all = { environment: 'live', disposition: 'applied' } as const
    expect(await planOf((db) => scanEventHeaders(db, all, order, null))).toEqual(['SCAN events'])
    expect(await planOf((db) => scanEventHeaders(db, all, order, 1_000))).toEqual([
      expect.stringMatching(/^SEARCH events USING INTEGER PRIMARY KEY \(rowid[<>]\?\)$/),
    ])
  })

  it.each(['held', 'quarantined'] as const)('a step through the few that are %s', async (disposition) => {
    const step = (db: Kysely<Database>, beyond: number | null) =>
      scanEventHeaders(db, { environment: 'live', disposition }, 'newest first', beyond)
    const few = 'SEARCH events USING INDEX events_waiting (environment=? AND disposition=?'
    expect(await planOf((db) => step(db, null))).toEqual([`${few})`])
    expect(await planOf((db) => step(db, 1_000))).toEqual([`${few} AND seq<?)`])
  })

  it('counting the events that wait looks at no other', async () => {
    expect(await planOf(countWaiting)).toEqual([
      'CO-ROUTINE waiting',
      'SCAN events USING COVERING INDEX events_waiting',
      // One row per environment and disposition.
      'SCAN waiting',
      'SEARCH events USING INTEGER PRIMARY KEY (rowid=?)',
    ])
  })

  it('the events with another body under their id cost as much as there are of those', async () => {
    expect(await planOf((db) => readPageOf(db, { conflicts: true }))).toEqual([
      'SEARCH other USING COVERING INDEX sqlite_autoindex_event_conflicts_1 (environment=?)',
      'SEARCH events USING COVERING INDEX sqlite_autoindex_events_1 (environment=? AND event_id=?)',
      'USE TEMP B-TREE FOR DISTINCT',
    ])
  })

  it('a step through all bodies, and through the others under their ids', async () => {
    expect(await planOf(compareBodies)).toEqual([
      'SCAN events',
      `SCAN event_conflicts USING INDEX sqlite_autoindex_event_conflicts_1`,
    ])
  })

  it('changes of a stretch of time are entered by time, those of a customer by customer, and none is sorted', async () => {
    expect(await planOf(readChangesOfTime)).toEqual([
      'SEARCH changes USING INTEGER PRIMARY KEY (rowid<?)',
      'SEARCH changes USING INDEX changes_by_time (environment=? AND at=? AND cursor>?)',
      'SEARCH changes USING INDEX changes_by_time (environment=? AND at>? AND at<?)',
    ])
    const theirs = { from: 1, to: NOON, customerId: 'cus_1' }
    expect(await planOf((db) => loadChanges(db, 'live', 0, 10, theirs))).toEqual([
      'SEARCH changes USING INDEX changes_by_customer (customer_id=? AND environment=? AND cursor>?)',
    ])
  })

  it('a search reads a range of each index, in the order of the list', async () => {
    const steps = await planOf(searchEverywhere)
    const detail =
      'SEARCH customer_lookups USING PRIMARY KEY (environment=? AND name=? AND (value,customer_id)>(?,?) AND value<?)'
    expect(steps.filter((step) => step.includes('TEMP B-TREE'))).toEqual([])
    expect(steps).toEqual(expect.arrayContaining([detail]))
  })

  it('the newest change is read from the end of the log', async () => {
    expect(await planOf(latestCursor)).toEqual(['SCAN changes'])
  })
})

function readPageOf(db: Transaction<Database>, filter: Parameters<typeof everyEvent>[0]) {
  return readEventPage(db, { filter: everyEvent(filter), before: null, limit: 10 })
}

/** From the middle of the references on, through every other way. */
async function searchEverywhere(db: Transaction<Database>): Promise<void> {
  const record = {
    customerId: 'cus_1',
    deletedAt: null,
    facts: { email: { value: 'a@', at: 1, by: 'evt_1' } },
  }
  await saveCustomers(db, 'live', new Map(), [record])
  const search = {
    environment: 'live',
    prefix: 'a',
    reference: 'externalRef',
    isPersonal: true,
    limit: 1,
  } as const
  const after = { by: 'reference', value: 'a', customerId: 'cus_1' } as const
  const byEmail = await searchCustomers(db, { ...search, after })
  expect(byEmail.items).toMatchObject([{ by: 'email', customerId: 'cus_1' }])
  expect((await searchCustomers(db, { ...search, prefix: 'c', after: null })).items).toHaveLength(1)
}

/** The second page, which begins at a row. */
async function readChangesOfTime(db: Transaction<Database>): Promise<void> {
  const change = { environment: 'live', customerId: 'cus_1', productId: 'pro_1' } as const
  const shown = { before: NEVER_GRANTED, after: NEVER_GRANTED }
  await appendChanges(db, [{ ...change, ...shown, at: NOON, cause: { kind: 'clock', eventId: null } }])
  await loadChangesOfTime(db, 'live', 1, 10, { from: 1, to: NOON })
}

async function readOneOnPage(db: Transaction<Database>): Promise<void> {
  await insertEvents(db, DELIVERIES)
  const { items } = await readEventPage(db, { filter: everyEvent(), before: 3, limit: 10 })
  expect(items).toHaveLength(2)
}

/** In a store with an old event, and then in one with none. */
async function expireOneAndMore(db: Transaction<Database>): Promise<void> {
  await insertEvents(db, [newEvent()])
  for (const before of [NOON * 2, NOON * 2]) await expireBodies(db, before, NOON)
}

/** The steps by which SQLite answers the statements that `query` runs. */
async function planOf(query: (db: Transaction<Database>) => Promise<unknown>): Promise<readonly string[]> {
  const db = await temporaryStore()
  return db.transaction().execute(async (trx) => {
    const statements: RootOperationNode[] = []
    await query(recording(trx, statements) as Transaction<Database>)
    const plans = statements.map((statement) => explain(trx, statement))
    return (await Promise.all(plans)).flat()
  })
}

function recording(db: Kysely<Database>, statements: RootOperationNode[]): Kysely<Database> {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      statements.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  return db.withPlugin(plugin)
}

async function explain(db: Kysely<Database>, statement: RootOperationNode): Promise<readonly string[]> {
  const { sql, parameters } = db.getExecutor().compileQuery(statement, { queryId: 'plan' })
  const plan = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters])
  const { rows } = await db.executeQuery<{ detail: string }>(plan)
  return rows.map(({ detail }) => detail)
}
