import {
  CompiledQuery,
  type Kysely,
  type KyselyPlugin,
  type RootOperationNode,
  type Transaction,
} from 'kysely'
import { describe, expect, it } from 'vitest'
import { loadAccount } from '../../src/store/account.js'
import { latestCursor, loadChanges } from '../../src/store/changes.js'
import {
  findCustomersByReference,
  findCustomersByReferences,
  loadReferences,
} from '../../src/store/customer-references.js'
import { findCustomers, loadCustomers } from '../../src/store/customers.js'
import { deleteEntitlements, loadDue, loadEntitlements } from '../../src/store/entitlements.js'
import { createEventBodyReader } from '../../src/store/event-body-reader.js'
import { recordDuplicates } from '../../src/store/event-duplicates.js'
import { createEventReader } from '../../src/store/event-reader.js'
import { selectSummaries } from '../../src/store/event-rows.js'
import { glanceAtEvents } from '../../src/store/event-walk.js'
import {
  loadKnownPayments,
  loadSourceEvents,
  loadStoredIds,
  movePaymentEvents,
  setDispositions,
} from '../../src/store/events.js'
import { loadGrounds } from '../../src/store/grounds.js'
import { loadManualEvents } from '../../src/store/manual-events.js'
import { loadLinks } from '../../src/store/payment-links.js'
import { loadWrittenActive } from '../../src/store/product-customers.js'
import type { Database } from '../../src/store/schema.js'
import { deleteSources, loadSources, loadSourcesOfCustomers } from '../../src/store/sources.js'
import { NOON, newEvent, paymentEvent, subscriptionEvent } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

const SOURCES = [
  { kind: 'payment', id: 'pay_1' },
  { kind: 'subscription', id: 'sub_1' },
] as const
const RECORDS = [
  { customerId: 'cus_1', productId: 'pro_1' },
  { customerId: 'cus_2', productId: 'pro_1' },
]
const MOVES = [
  { paymentId: 'pay_1', from: SOURCES[0], to: SOURCES[1] },
  { paymentId: 'pay_2', from: SOURCES[0], to: SOURCES[1] },
]
const OUTCOMES = [
  { eventId: 'evt_1', disposition: 'applied', reason: null },
  { eventId: 'evt_2', disposition: 'applied', reason: null },
] as const
const PRODUCT_PAGE = { environment: 'live', productId: 'pro_1', after: 'cus_1', limit: 10 } as const
const EVENT = { environment: 'live', eventId: 'evt_1' } as const
const DELIVERIES = [newEvent(paymentEvent()), newEvent(subscriptionEvent())]

describe('the cost of a query does not grow with the number of stored rows:', () => {
  it.each<[string, (db: Transaction<Database>) => Promise<unknown>]>([
    ['events of sources', (db) => loadSourceEvents(db, 'live', SOURCES)],
    ['moving payments', (db) => movePaymentEvents(db, 'live', MOVES)],
    ['dispositions', (db) => setDispositions(db, 'live', OUTCOMES)],
    ['duplicates', (db) => recordDuplicates(db, DELIVERIES)],
    ['ids of events', (db) => loadStoredIds(db, 'live', ['evt_1', 'evt_2'])],
    ['payments that are known', (db) => loadKnownPayments(db, 'live', ['pay_1', 'pay_2'])],
    ['links of payments', (db) => loadLinks(db, 'live', ['pay_1', 'pay_2'])],
    ['sources', (db) => loadSources(db, 'live', SOURCES)],
    ['sources of customers', (db) => loadSourcesOfCustomers(db, 'live', ['cus_1', 'cus_2'])],
    ['deleting sources', (db) => deleteSources(db, 'live', SOURCES)],
    ['grounds of an answer', (db) => loadGrounds(db, 'live', ['cus_1', 'cus_2'])],
    ['entitlements of customers', (db) => loadEntitlements(db, 'live', ['cus_1', 'cus_2'])],
    ['deleting entitlements', (db) => deleteEntitlements(db, 'live', RECORDS)],
    ['entitlements that are due', (db) => loadDue(db, NOON, 10)],
    ['customers', (db) => loadCustomers(db, 'live', ['cus_1', 'cus_2'])],
    ['customers by email', (db) => findCustomers(db, 'live', { email: 'a@example.com' })],
    ['customers by community', (db) => findCustomers(db, 'live', { communityId: '1' })],
    ['customers by messenger', (db) => findCustomers(db, 'live', { messengerId: '1' })],
    ['customers by reference', (db) => findCustomersByReference(db, 'live', 'externalRef', 'a')],
    ['what was done by hand to customers', (db) => loadManualEvents(db, 'live', ['cus_1', 'cus_2'])],
    ['all that explains one customer', (db) => loadAccount(db, 'live', 'cus_1', 'pro_1')],
    [
      'customers by many references',
      (db) => findCustomersByReferences(db, 'live', 'externalRef', ['a', 'b']),
    ],
    ['references of a customer', (db) => loadReferences(db, 'live', 'cus_1')],
    ['customers with a product', (db) => loadWrittenActive(db, PRODUCT_PAGE)],
    ['changes', (db) => loadChanges(db, 'live', 5, 10)],
    ['one stored event', (db) => createEventReader(db)(EVENT)],
    ['the bytes of an event', (db) => createEventBodyReader(db)({ ...EVENT, sha256: null })],
    ['another body of an event', (db) => createEventBodyReader(db)({ ...EVENT, sha256: '00' })],
    ['a page of events', (db) => selectSummaries(db).where('seq', 'in', [1, 2]).orderBy('seq').execute()],
  ])('%s', async (_what, query) => {
    const steps = await planOf(query)
    expect(steps.filter((step) => step.startsWith('SEARCH'))).not.toEqual([])
    // A whole table, or all of one environment.
    const whole =
      /^SCAN (events|payment_links|sources|entitlements|customers|customer_references|changes)|\(environment=\?\)/
    expect(steps.filter((step) => whole.test(step))).toEqual([])
  })

  it.each(['newest first', 'oldest first'] as const)('a step through the events, %s', async (order) => {
    const all = { environment: 'live', disposition: 'applied' } as const
    expect(await planOf((db) => glanceAtEvents(db, all, order, null))).toEqual(['SCAN events'])
    expect(await planOf((db) => glanceAtEvents(db, all, order, 1_000))).toEqual([
      expect.stringMatching(/^SEARCH events USING INTEGER PRIMARY KEY \(rowid[<>]\?\)$/),
    ])
  })

  it.each(['held', 'quarantined'] as const)('a step through the few that are %s', async (disposition) => {
    const step = (db: Kysely<Database>, beyond: number | null) =>
      glanceAtEvents(db, { environment: 'live', disposition }, 'newest first', beyond)
    const few = 'SEARCH events USING INDEX events_waiting (environment=? AND disposition=?'
    expect(await planOf((db) => step(db, null))).toEqual([`${few})`])
    expect(await planOf((db) => step(db, 1_000))).toEqual([`${few} AND seq<?)`])
  })

  it('the newest change is read from the end of the log', async () => {
    expect(await planOf(latestCursor)).toEqual(['SCAN changes'])
  })
})

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
