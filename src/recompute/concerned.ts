import type { Transaction } from 'kysely'
import { isNewerLink, linkOf, type PaymentLink } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { addFacts, type CustomerRecord } from '../store/customer-facts.js'
import { type Reference, referencesIn } from '../store/customer-references.js'
import { referenceKey, replacePeople, type ToldPerson } from '../store/customers.js'
import { ENVIRONMENTS } from '../store/keys.js'
import type { Concern } from '../store/recompute-job.js'
import { type GroupRow, loadGroupRows, loadGroupRowsBeyond } from '../store/recompute-rows.js'
import type { Database } from '../store/schema.js'
import { groupEvents, readRows } from './group.js'
import { isDryReplay, nodeName, type Run } from './run.js'
import { noteAhead, settleGroups } from './settle.js'

/** Bounds the memory. */
const SOUGHT_AT_ONCE = 10_000
const SETTLED_AT_ONCE = 200
const ROWS_AT_ONCE = 1_000

/** Does something in a transaction of its own, between deliveries. */
export type InTurn = <T>(work: (trx: Transaction<Database>) => Promise<T>) => Promise<T>

/**
 * Works out again what all events together say of the customers and payments that are concerned. No source leads to all
 * of a customer's events, nor to all that link a payment: each stored event is asked whom it names.
 */
export async function settleConcerned(run: Run, inTurn: InTurn): Promise<void> {
  while (run.concerned.size > 0) {
    const some = [...run.concerned].slice(0, SOUGHT_AT_ONCE)
    const naming = new Map(some.map(([name]) => [name, new Set<number>()]))
    let reached = 0
    const seekNext = async (trx: Transaction<Database>): Promise<boolean> => {
      const rows = await loadGroupRowsBeyond(trx, reached, Number.MAX_SAFE_INTEGER, ROWS_AT_ONCE)
      await noteNaming(trx, run, rows, naming)
      reached = rows.at(-1)?.seq ?? reached
      return rows.length === ROWS_AT_ONCE
    }
    while (await inTurn(seekNext));
    for (let i = 0; i < some.length; i += SETTLED_AT_ONCE) {
      await inTurn(async (trx) => {
        while (await seekNext(trx));
        const chunk = some.slice(i, i + SETTLED_AT_ONCE)
        for (const environment of ENVIRONMENTS) {
          const own = chunk.filter(([, concern]) => concern.environment === environment)
          await settleThese(trx, run, environment, own, naming)
        }
      })
    }
    for (const [name] of some) run.concerned.delete(name)
  }
}

async function noteNaming(
  trx: Transaction<Database>,
  run: Run,
  rows: readonly GroupRow[],
  naming: ReadonlyMap<string, Set<number>>,
): Promise<void> {
  const isAnyPayment = [...run.concerned.values()].some(({ kind }) => kind === 'payment')
  for (const environment of ENVIRONMENTS) {
    const node = (kind: Concern['kind'], id: string | null | undefined) =>
      naming.get(nodeName(environment, { kind, id: id ?? '' }))
    const asked = rows.filter((row) => {
      if (row.environment !== environment) return false
      // Which payment an event names, no column says of all events; and on trial, the columns are not as it is read.
      return isAnyPayment || isDryReplay(run) || node('customer', row.customer_id) !== undefined
    })
    for (const [seq, event] of await readEvents(trx, run, environment, asked)) {
      node('customer', event.customerId)?.add(seq)
      node('payment', linkOf(event)?.paymentId)?.add(seq)
    }
  }
}

async function readEvents(
  trx: Transaction<Database>,
  run: Run,
  environment: Environment,
  rows: readonly GroupRow[],
): Promise<readonly (readonly [number, NormalizedEvent])[]> {
  const again = isDryReplay(run) ? await readRows(trx, run, environment, rows) : new Map()
  return groupEvents(rows, again).flatMap(({ row, after }) => (after === null ? [] : [[row.seq, after]]))
}

async function settleThese(
  trx: Transaction<Database>,
  run: Run,
  environment: Environment,
  concerns: readonly (readonly [string, Concern])[],
  naming: ReadonlyMap<string, ReadonlySet<number>>,
): Promise<void> {
  const people = new Map<string, ToldPerson>()
  const links = new Map<string, PaymentLink | null>()
  for (const [name, { kind, id }] of concerns) {
    // Read once more: an erasure may have removed something meanwhile.
    const rows = await loadGroupRows(trx, [...(naming.get(name) ?? [])])
    const events = (await readEvents(trx, run, environment, rows)).map(([, event]) => event)
    if (kind === 'customer') people.set(id, personIn(id, events))
    else links.set(id, newestLink(id, events))
  }
  if (run.mode === 'apply') await replacePeople(trx, environment, people)
  for (const [id, { record }] of people) {
    const { communityId, messengerId } = record?.facts ?? {}
    const accounts = { communityId: communityId?.value ?? null, messengerId: messengerId?.value ?? null }
    noteAhead(run, environment, id, { accounts })
  }
  if (links.size > 0) await settleGroups(trx, run, environment, { links })
}

function personIn(customerId: string, events: readonly NormalizedEvent[]): ToldPerson {
  let record: CustomerRecord | null = null
  const references = new Map<string, Reference>()
  for (const event of events) {
    if (event.customerId !== customerId) continue
    const { facts, deletedAt }: Pick<CustomerRecord, 'facts' | 'deletedAt'> = record ?? {
      facts: {},
      deletedAt: null,
    }
    record = {
      customerId,
      facts: addFacts(facts, event),
      deletedAt: event.type === 'customer.deleted' ? Math.max(event.createdAt, deletedAt ?? 0) : deletedAt,
    }
    for (const reference of referencesIn(event)) references.set(referenceKey(reference), reference)
  }
  return { record, references }
}

/** Null: none of them links it. */
function newestLink(paymentId: string, events: readonly NormalizedEvent[]): PaymentLink | null {
  let newest: PaymentLink | null = null
  for (const event of events) {
    const link = linkOf(event)
    if (link?.paymentId === paymentId && isNewerLink(link, newest ?? undefined)) newest = link
  }
  return newest
}
