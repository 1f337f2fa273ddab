import type { Transaction } from 'kysely'
import type { Environment, ManualEvent } from '../provider/event.js'
import { fingerprintOf } from '../provider/fingerprints.js'
import type { ErasedPeople } from '../provider/known-people.js'
import { loadCustomers } from '../store/customers.js'
import { saveErasure } from '../store/erasures.js'
import { newestSeq } from '../store/event-walk.js'
import { fingerprintKey } from '../store/fingerprint-key.js'
import { forgetPerson } from '../store/forget-person.js'
import { markAccountHolders } from '../store/mark-account-holders.js'
import type { Database } from '../store/schema.js'
import { loadSeqsOfCustomer } from '../store/stored-bodies.js'
import { loadKnownBy } from './known-by.js'
import { scrubStored } from './scrub-stored.js'

/** Nearly everybody has fewer events; of others, the rest is found as all that is stored is looked through. */
const EVENTS_AT_ONCE = 500

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
  const key = await fingerprintKey(trx)
  const fingerprints = { key, known: knownBy.map((word) => fingerprintOf(key, word)) }
  const erasure = { environment, customerId, eventId, erasedAt: createdAt, knownBy, fingerprints, sweepEnd }
  // The erasure is stored by now, and is an event of theirs too.
  const wasKnown = seqs.length > 1 || (await hasDetails(trx, environment, customerId))
  await saveErasure(trx, { ...erasure, wasKnown })
  // What was given to their platform accounts is to be taken back, or stays another's.
  await markAccountHolders(trx, environment, [customerId])
  await forgetPerson(trx, environment, customerId)
  await scrubStored(trx, environment, seqs, people, now)
}

async function hasDetails(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
): Promise<boolean> {
  const customer = (await loadCustomers(trx, environment, [customerId])).get(customerId)
  return customer !== undefined && Object.keys(customer.facts).length > 0
}
