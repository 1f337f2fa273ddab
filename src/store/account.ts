/* All that is stored of one customer: what is known of the person, and what explains their access. */

import { type Kysely, type Selectable, sql } from 'kysely'
import { afterErasures } from '../entitlements/by-hand.js'
import { instantFor, viewSource } from '../entitlements/entitlement.js'
import {
  type Explanation,
  explain,
  type StoredAccount,
  type StoredHold,
  type StoredSourceEvent,
} from '../entitlements/explain.js'
import { historyEvent } from '../entitlements/history.js'
import type {
  HoldReason,
  KnownCustomer,
  KnownFact,
  KnownSource,
  SourceKey,
  SourceState,
} from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import type { Policy } from '../entitlements/policy.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { AccessQuery } from './access.js'
import { rowStatement } from './bulk.js'
import type { CustomerFacts } from './customer-facts.js'
import { loadReferences } from './customer-references.js'
import { loadCustomer, loadCustomers } from './customers.js'
import { loadActsOn, NO_ACTS } from './manual-events.js'
import { loadPolicy } from './policy.js'
import type { Database, EventsTable } from './schema.js'
import { loadSources, loadSourcesOfCustomers, readHistory } from './sources.js'
import { eventInForm } from './stored-form.js'

export interface ExplanationQuery extends AccessQuery {
  readonly productId: string
}

/**
 * Explains one customer's access to one product from the stored events, under the policy in force.
 * @param configured the policy of a store in which none is in force yet
 */
export function readExplanation(
  db: Kysely<Database>,
  clock: () => number,
  configured: Policy,
  { environment, customerId, productId, at }: ExplanationQuery,
): Promise<Explanation> {
  // One transaction, so that sources, events and policy are of one moment.
  return db.transaction().execute(async (trx) => {
    const policy = (await loadPolicy(trx)) ?? configured
    const account = await loadAccount(trx, environment, customerId, productId)
    return explain(account, productId, at === null ? { now: clock() } : { at }, policy)
  })
}

/** How many of the newest held events are looked through for those that may be the customer's. */
const HOLDS_SEEN = 1000

/** Everything that is stored about what one customer may use; of held events, what may be about the product. */
export async function loadAccount(
  db: Kysely<Database>,
  environment: Environment,
  customerId: string,
  productId: string,
): Promise<StoredAccount> {
  const sources = (await loadSourcesOfCustomers(db, environment, [customerId])).get(customerId) ?? []
  const keys = sources.map(({ kind, id }) => ({ kind, id }))
  const events = await loadStoredEvents(db, environment, keys)
  const { blocks, erasures } = (await loadActsOn(db, environment, [customerId])).get(customerId) ?? NO_ACTS
  const isKnown = (await loadCustomers(db, environment, [customerId])).has(customerId)
  const own = new Set(keys.map(sourceKey))
  const holds = (await loadHolds(db, environment, customerId))
    .filter(({ source }) => source === null || !own.has(sourceKey(source)))
    .filter(({ event }) => mayBeAbout(event, customerId, productId))
  return {
    customerId,
    environment,
    isKnown: isKnown || keys.length > 0 || holds.some(({ event }) => event.customerId === customerId),
    sources: keys.map((key) => ({ key, events: events.get(sourceKey(key)) ?? [] })),
    blocks,
    erasures,
    holds,
  }
}

/** A held event that names neither the customer nor the product could be anybody's, about anything. */
function mayBeAbout(
  event: Pick<NormalizedEvent, 'customerId' | 'productId'>,
  customerId: string,
  productId: string,
): boolean {
  if (event.customerId === null) return event.productId === productId
  return event.customerId === customerId && (event.productId ?? productId) === productId
}

type EventRow = Pick<
  Selectable<EventsTable>,
  'seq' | 'event_id' | 'normalized' | 'received_at' | 'disposition'
>

const selectEvents = rowStatement(
  ([seq]) =>
    sql<EventRow>`select seq, event_id, normalized, received_at, disposition from events where seq = ${seq}`,
)

async function loadStoredEvents(
  db: Kysely<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<ReadonlyMap<string, readonly StoredSourceEvent[]>> {
  const found = new Map<string, readonly StoredSourceEvent[]>()
  for (const [name, source] of await loadSources(db, environment, keys)) {
    const rows = await selectEvents(
      db,
      readHistory(source).map(({ seq }) => [seq]),
    )
    found.set(
      name,
      rows.flatMap((row) => storedEvent(row) ?? []),
    )
  }
  return found
}

/** Held events, newest first, that name the customer, or nobody. */
async function loadHolds(
  db: Kysely<Database>,
  environment: Environment,
  customerId: string,
): Promise<readonly StoredHold[]> {
  const rows = await db
    .selectFrom('events')
    .select([
      'seq',
      'source_kind',
      'source_id',
      'event_id',
      'normalized',
      'received_at',
      'disposition',
      'reason',
    ])
    .where('environment', '=', environment)
    // Both values in literals: only so does SQLite read the index of the few events that wait.
    .where(sql<boolean>`disposition in ('held', 'quarantined') and disposition = 'held'`)
    .where((eb) => eb.or([eb('customer_id', 'is', null), eb('customer_id', '=', customerId)]))
    .orderBy('seq', 'desc')
    .limit(HOLDS_SEEN)
    .execute()
  return rows.flatMap((row) => {
    const stored = storedEvent(row)
    // Of a held event the reason is why it waits.
    return stored === null ? [] : [{ ...stored, source: sourceIn(row), reason: row.reason as HoldReason }]
  })
}

function sourceIn({
  source_kind: kind,
  source_id: id,
}: Pick<Selectable<EventsTable>, 'source_kind' | 'source_id'>): SourceKey | null {
  return kind === null || id === null ? null : { kind, id }
}

function storedEvent(row: EventRow): StoredSourceEvent | null {
  const { seq, event_id, normalized, received_at: receivedAt, disposition } = row
  const event = normalized === null ? null : historyEvent(seq, eventInForm(normalized, event_id))
  return event === null || disposition === 'quarantined' ? null : { event, receivedAt, disposition }
}

export interface CustomerQuery {
  readonly environment: Environment
  readonly customerId: string
}

const METADATA = 'metadata.'

/** Everything that is known of one person; null where that is nothing. */
export async function readKnownCustomer(
  db: Kysely<Database>,
  clock: () => number,
  { environment, customerId }: CustomerQuery,
): Promise<KnownCustomer | null> {
  const record = await loadCustomer(db, environment, customerId)
  const sources = (await loadSourcesOfCustomers(db, environment, [customerId])).get(customerId) ?? []
  const acts = (await loadActsOn(db, environment, [customerId])).get(customerId) ?? NO_ACTS
  const { blocks, erasures } = acts
  const hasActs = blocks.length > 0 || erasures.length > 0
  if (record === undefined && sources.length === 0 && !hasActs) return null
  const now = clock()
  const facts = record?.facts ?? {}
  return {
    customerId,
    environment,
    facts,
    metadata: metadataOf(facts),
    references: await loadReferences(db, environment, customerId),
    blocks,
    deletedAt: record?.deletedAt ?? null,
    erasedAt: erasures[0]?.at ?? null,
    sources: sources.flatMap((source) => viewsOf(afterErasures(source, erasures), now)),
  }
}

function metadataOf(facts: CustomerFacts): Record<string, KnownFact> {
  const own = Object.entries(facts).filter(([name]) => name.startsWith(METADATA))
  return Object.fromEntries(
    own.flatMap(([name, fact]) => (fact === undefined ? [] : [[name.slice(METADATA.length), fact]])),
  )
}

/** A source once for each product that it ever gave, in order; once where it gave none. */
function viewsOf(source: SourceState, now: number): KnownSource[] {
  const products = [...new Set(source.intervals.map(({ productId }) => productId))].sort(compareText)
  if (products.length === 0) return [{ source, productId: null, view: null }]
  const at = instantFor(source, { now })
  return products.map((productId) => ({ source, productId, view: viewSource(source, productId, at) }))
}
