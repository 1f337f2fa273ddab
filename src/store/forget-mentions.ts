import type { Transaction } from 'kysely'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { CustomerFacts } from './customer-facts.js'
import { deleteReferences } from './customer-references.js'
import { loadCustomers, saveCustomers } from './customers.js'
import type { Database } from './schema.js'

/**
 * Forgets of a customer what an event of theirs told in its metadata and tells no more, since it tells of somebody
 * erased. What an event before it told is not known again by that.
 */
export async function forgetMentions(
  trx: Transaction<Database>,
  environment: Environment,
  before: NormalizedEvent,
  after: NormalizedEvent,
): Promise<void> {
  const gone = Object.entries(before.metadata).filter(([name]) => after.metadata[name] === undefined)
  const { customerId } = after
  if (customerId === null || gone.length === 0) return
  await deleteReferences(trx, environment, [
    { ...after, externalRef: null, metadata: Object.fromEntries(gone) },
  ])
  const known = await loadCustomers(trx, environment, [customerId])
  const record = known.get(customerId)
  if (record === undefined) return
  const values = new Map<string, string>(gone.map(([name, value]) => [`metadata.${name}`, value]))
  const facts: CustomerFacts = Object.fromEntries(
    Object.entries(record.facts).filter(([name, fact]) => values.get(name) !== fact?.value),
  )
  await saveCustomers(trx, environment, known, [{ ...record, facts }])
}
