import type { Transaction } from 'kysely'
import { isNewerLink, linkOf, type PaymentLink } from '../entitlements/source-of.js'
import type { NormalizedEvent } from '../provider/event.js'
import { addFacts, type CustomerRecord } from '../store/customer-facts.js'
import { referencesIn } from '../store/customer-references.js'
import { replacePeople, type ToldPerson } from '../store/customers.js'
import type { Concern } from '../store/recompute-job.js'
import { type GroupRow, loadGroupRows, loadGroupRowsBeyond } from '../store/recompute-rows.js'
import type { Database } from '../store/schema.js'
import { readEvents, type Seeds } from './group.js'
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
 * of a customer's events, nor to all that link a payment, so every stored event is searched for their ids.
 */
export async function settleConcerned(run: Run, inTurn: InTurn): Promise<void> {
  while (run.concerned.size > 0) {
    const some = [...run.concerned].slice(0, SOUGHT_AT_ONCE)
    const naming = new Map(some.map(([name]) => [name, new Set<number>()]))
    // Which payment an event names, no column says of all events; and of a dry run, the columns are not as it reads.
    const isAnyAsked = isDryReplay(run) || some.some(([, { kind }]) => kind === 'payment')
    let reached = 0
    const seekNext = async (trx: Transaction<Database>): Promise<boolean> => {
      const rows = await loadGroupRowsBeyond(trx, reached, Number.MAX_SAFE_INTEGER, ROWS_AT_ONCE)
      const asked = rows.filter(
        ({ environment, customer_id: id }) => isAnyAsked || naming.has(nodeName(environment, 'customer', id)),
      )
      for (const { row, after } of await readable(trx, run, asked)) {
        naming.get(nodeName(row.environment, 'customer', after.customerId))?.add(row.seq)
        naming.get(nodeName(row.environment, 'payment', linkOf(after)?.paymentId))?.add(row.seq)
      }
      reached = rows.at(-1)?.seq ?? reached
      return rows.length === ROWS_AT_ONCE
    }
    while (await inTurn(seekNext));
    for (let i = 0; i < some.length; i += SETTLED_AT_ONCE) {
      await inTurn(async (trx) => {
        while (await seekNext(trx));
        await settleThese(trx, run, some.slice(i, i + SETTLED_AT_ONCE), naming)
      })
    }
    for (const [name] of some) run.concerned.delete(name)
  }
}

async function readable(trx: Transaction<Database>, run: Run, rows: readonly GroupRow[]) {
  const events = await readEvents(trx, run, rows)
  return events.flatMap(({ row, after }) => (after === null ? [] : [{ row, after }]))
}

async function settleThese(
  trx: Transaction<Database>,
  run: Run,
  concerns: readonly (readonly [string, Concern])[],
  naming: ReadonlyMap<string, ReadonlySet<number>>,
): Promise<void> {
  const payments: NonNullable<Seeds['payments']>[number][] = []
  for (const [name, { environment, kind, id }] of concerns) {
    // Read once more: an erasure may have removed something meanwhile.
    const rows = await loadGroupRows(trx, [...(naming.get(name) ?? [])])
    const events = (await readable(trx, run, rows)).map(({ after }) => after)
    if (kind === 'payment') payments.push({ environment, id, link: newestLink(id, events) })
    else {
      const person = personIn(id, events)
      if (run.mode === 'apply') await replacePeople(trx, environment, new Map([[id, person]]))
      const { communityId, messengerId } = person.record?.facts ?? {}
      const accounts = { communityId: communityId?.value ?? null, messengerId: messengerId?.value ?? null }
      noteAhead(run, environment, id, { accounts })
    }
  }
  if (payments.length > 0) await settleGroups(trx, run, { payments })
}

function personIn(customerId: string, events: readonly NormalizedEvent[]): ToldPerson {
  let record: CustomerRecord | null = null
  const naming = events.filter((one) => one.customerId === customerId)
  for (const event of naming) {
    const { facts, deletedAt }: CustomerRecord = record ?? { customerId, facts: {}, deletedAt: null }
    const isDeletion = event.type === 'customer.deleted'
    record = {
      customerId,
      facts: addFacts(facts, event),
      deletedAt: isDeletion ? Math.max(event.createdAt, deletedAt ?? event.createdAt) : deletedAt,
    }
  }
  return { record, references: naming.flatMap(referencesIn) }
}

/** Null: none of them links it. */
function newestLink(paymentId: string, events: readonly NormalizedEvent[]): PaymentLink | null {
  const links = events.flatMap((event) => linkOf(event) ?? []).filter((link) => link.paymentId === paymentId)
  return links.reduce<PaymentLink | null>((a, b) => (isNewerLink(b, a ?? undefined) ? b : a), null)
}
