/* Everything stored about one customer: the explanation of their access, and what is known of the person. */

import { sql } from 'kysely'
import { afterErasures, foldActs } from '../entitlements/by-hand.js'
import { instantFor, viewSource } from '../entitlements/entitlement.js'
import {
  type Explanation,
  explain,
  type StoredAccount,
  type StoredSourceEvent,
} from '../entitlements/explain.js'
import { historyEvent } from '../entitlements/history.js'
import type { HoldReason, SourceKey, SourceState, SourceView } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import type { Fact } from '../provider/facts.js'
import { compareText } from '../provider/order.js'
import type { AccessQuery } from './access.js'
import { bulkLookup } from './bulk.js'
import { type CustomerRecord, loadCustomer, loadCustomers, loadReferences } from './customers.js'
import type { EventGlance } from './event-walk.js'
import { loadManualEvents } from './events.js'
import { placeOf } from './recompute.js'
import type { Db, EventsTable, PersonKey } from './schema.js'
import { policyInForce } from './settings.js'
import { loadSources, loadSourcesOfCustomers, readHistory, type StoredSource } from './sources.js'
import { eventInForm } from './stored-form.js'

/** Explains one customer's access to one product from the stored events, under the policy in force. */
export function readExplanation(
  db: Db,
  clock: () => number,
  { environment, customerId, productId, at }: AccessQuery & { readonly productId: string },
): Promise<Explanation> {
  // One transaction, so that sources, events and policy match.
  return db.transaction().execute(async (trx) => {
    const policy = await policyInForce(trx)
    const account = await loadAccount(trx, environment, customerId, productId)
    return explain(account, productId, at === null ? { now: clock() } : { at }, policy)
  })
}

/** Everything stored about one customer's access, including held events that may be about the product. */
export async function loadAccount(
  db: Db,
  environment: Environment,
  customerId: string,
  productId: string,
): Promise<StoredAccount> {
  const own = (await loadSourcesOfCustomers(db, environment, [customerId])).get(customerId) ?? []
  const stored = await loadSources(db, environment, own)
  const sources: { key: SourceKey; events: readonly StoredSourceEvent[] }[] = []
  for (const { kind, id } of own) {
    const events = await loadEvents(db, stored.get(sourceKey({ kind, id })))
    sources.push({ key: { kind, id }, events })
  }
  const holds = (await loadHolds(db, environment, customerId)).filter(({ event, source }) => {
    if (source !== null && stored.has(sourceKey(source))) return false
    // A held event that names neither the customer nor the product could be anybody's, about anything.
    if (event.customerId === null) return event.productId === productId
    return (event.productId ?? productId) === productId
  })
  const acts = await loadManualEvents(db, environment, [customerId])
  const { blocks, erasures } = foldActs(acts.get(customerId))
  const isKnown =
    own.length > 0 ||
    holds.some(({ event }) => event.customerId === customerId) ||
    (await loadCustomers(db, environment, [customerId])).has(customerId)
  return { customerId, environment, isKnown, sources, blocks, erasures, holds }
}

type EventRow = Pick<EventGlance, 'seq' | 'received_at' | 'disposition'> &
  Pick<EventsTable, 'event_id' | 'normalized'>

const selectEvents = bulkLookup(
  ['seq'],
  sql<EventRow>`select seq, event_id, normalized, received_at, disposition from events where`,
)

async function loadEvents(db: Db, source: StoredSource | undefined): Promise<readonly StoredSourceEvent[]> {
  const history = source === undefined ? [] : readHistory(source)
  const keys = history.map(({ seq }) => [seq])
  const rows = await selectEvents(db, keys)
  return rows.sort((a, b) => a.seq - b.seq).flatMap((row) => storedEvent(row) ?? [])
}

/** Maximum number of held events searched for the customer's, newest first. */
const HOLDS_SEEN = 1000

/** Held events, newest first, that name the customer, or nobody. */
async function loadHolds(db: Db, environment: Environment, customerId: string) {
  // Both values as literals: only then does SQLite use the index of waiting events.
  const { rows } = await sql<EventRow & Pick<EventsTable, 'source_kind' | 'source_id' | 'reason'>>`
    select seq, event_id, normalized, received_at, disposition, source_kind, source_id, reason from events
    where environment = ${environment} and disposition in ('held', 'quarantined') and disposition = 'held'
      and (customer_id is null or customer_id = ${customerId}) order by seq desc limit ${HOLDS_SEEN}`.execute(
    db,
  )
  return rows.flatMap((row) => {
    const stored = storedEvent(row)
    // The reason of a held event says what it waits for.
    return stored === null ? [] : [{ ...stored, source: placeOf(row), reason: row.reason as HoldReason }]
  })
}

function storedEvent(row: EventRow): StoredSourceEvent | null {
  const { seq, event_id, normalized, received_at: receivedAt, disposition } = row
  const read = normalized === null ? null : eventInForm(normalized, event_id)
  const event = read && historyEvent(seq, read)
  if (event === null || disposition === 'quarantined') return null
  const byHand = read?.subject === 'manual' ? { actor: read.actor, reason: read.reason } : {}
  return { event, receivedAt, disposition, ...byHand }
}

/** The state of one product in one source; `view` is null for a source that never gave access to any. */
export interface KnownSource {
  readonly source: SourceState
  readonly productId: string | null
  readonly view: SourceView | null
}

/** Everything known about one person in one environment; null if that is nothing. Personal data: never logged. */
export async function readKnownCustomer(db: Db, clock: () => number, { environment, customerId }: PersonKey) {
  const record = await loadCustomer(db, environment, customerId)
  const sources = (await loadSourcesOfCustomers(db, environment, [customerId])).get(customerId) ?? []
  const acts = await loadManualEvents(db, environment, [customerId])
  const { blocks, erasures } = foldActs(acts.get(customerId))
  const isKnown = record !== undefined || [sources, blocks, erasures].some(({ length }) => length > 0)
  if (!isKnown) return null
  const now = clock()
  const facts = record?.facts ?? {}
  return {
    customerId,
    environment,
    facts,
    /** The newest value of each key. */
    metadata: metadataIn(facts),
    /** Every reference of the customer, not only the newest: `externalRef` or `metadata.<key>`. */
    references: await loadReferences(db, environment, [customerId]),
    blocks,
    deletedAt: record?.deletedAt ?? null,
    /** When they were first erased, in epoch milliseconds: no personal data is kept since. */
    erasedAt: erasures[0]?.at ?? null,
    sources: sources.flatMap((source) => viewsOf(afterErasures(source, erasures), now)),
  }
}

const METADATA = 'metadata.'

function metadataIn(facts: CustomerRecord['facts']): Readonly<Record<string, Fact>> {
  const own = Object.entries(facts).flatMap(([name, fact]) =>
    fact && name.startsWith(METADATA) ? [[name.slice(METADATA.length), fact] as const] : [],
  )
  return Object.fromEntries(own)
}

/** A source once per product that it ever gave, in order; once if it gave none. */
function viewsOf(source: SourceState, now: number): KnownSource[] {
  const products = [...new Set(source.intervals.map(({ productId }) => productId))].sort(compareText)
  if (products.length === 0) return [{ source, productId: null, view: null }]
  const at = instantFor(source, { now })
  return products.map((productId) => ({ source, productId, view: viewSource(source, productId, at) }))
}
