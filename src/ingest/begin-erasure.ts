import type { Transaction } from 'kysely'
import type { CustomerDetails, Environment, ManualEvent } from '../provider/event.js'
import type { ErasedPeople } from '../provider/withhold-erased.js'
import { loadCustomers } from '../store/customers.js'
import { saveErasure } from '../store/erasures.js'
import { newestSeq } from '../store/event-walk.js'
import { forgetPerson } from '../store/forget-person.js'
import { markAccountHolders } from '../store/mark-account-holders.js'
import type { Database } from '../store/schema.js'
import { loadSeqsOfCustomer, loadStoredBodies } from '../store/stored-bodies.js'
import { scrubStored } from './scrub-stored.js'

/** Nearly everybody has fewer events; of others, the rest is found as all that is stored is looked through. */
const EVENTS_AT_ONCE = 500

/** What leads to one person alone; a name, or a short word, leads to many. */
const TELLING = ['email', 'communityId', 'messengerId'] as const satisfies readonly (keyof CustomerDetails)[]
const SHORTEST_TELLING = 5

/**
 * Forgets a person in the transaction in which their erasure is stored: all that is kept of them for itself, and what
 * their own events tell, as far as an index leads there. Their access is settled by then.
 */
export async function beginErasure(
  trx: Transaction<Database>,
  environment: Environment,
  { id: eventId, customerId, createdAt }: ManualEvent,
  people: ErasedPeople,
  now: number,
): Promise<void> {
  const seqs = await loadSeqsOfCustomer(trx, environment, customerId, EVENTS_AT_ONCE)
  const knownBy = await loadKnownBy(trx, environment, customerId, seqs)
  const sweepEnd = await newestSeq(trx)
  await saveErasure(trx, { environment, customerId, eventId, erasedAt: createdAt, knownBy, sweepEnd })
  // What was given to their platform accounts is to be taken back, or stays another's.
  await markAccountHolders(trx, environment, [customerId])
  await forgetPerson(trx, environment, customerId)
  await scrubStored(trx, environment, seqs, people, now)
}

/** The id, and whatever else of theirs is found in events that don't tell the id. */
async function loadKnownBy(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
  seqs: readonly number[],
): Promise<readonly string[]> {
  const known = (await loadCustomers(trx, environment, [customerId])).get(customerId)
  const words = TELLING.map((name) => known?.facts[name]?.value)
  for (const { event, customerId: owner } of seqs.length === 0 ? [] : await loadStoredBodies(trx, seqs)) {
    if (owner === customerId && event !== null)
      words.push(...TELLING.map((name) => event.customer[name] ?? undefined))
  }
  const telling = words.flatMap((word) => (word && word.length >= SHORTEST_TELLING ? word.toLowerCase() : []))
  return [...new Set([customerId.toLowerCase(), ...telling])]
}
