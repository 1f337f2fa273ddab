import type { Transaction } from 'kysely'
import type { CustomerDetails, Environment } from '../provider/event.js'
import type { PersonWord } from '../provider/fingerprints.js'
import { parseJsonBody } from '../provider/json.js'
import { isNumber } from '../provider/numbers.js'
import { asContact, asName } from '../provider/person-words.js'
import { phonesOf } from '../provider/phones.js'
import { findCustomersByReference } from '../store/customer-references.js'
import { loadCustomers } from '../store/customers.js'
import type { Database } from '../store/schema.js'
import { loadStoredBodies, type StoredBody } from '../store/stored-bodies.js'

type DetailName = keyof CustomerDetails

const CONTACTS = ['email', 'communityId', 'messengerId'] as const satisfies readonly DetailName[]
const NAMES = ['name', 'communityUsername', 'messengerUsername'] as const satisfies readonly DetailName[]

/** A shorter one stands in too much that is about others. */
const SHORTEST_CONTACT = 5
const SHORTEST_NAME = 4

/** A body has up to a mebibyte, and only so many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** Whatever a person is known by that is found in what is told of others, and in events that don't tell the id. */
export async function loadKnownBy(
  trx: Transaction<Database>,
  environment: Environment,
  customerId: string,
  seqs: readonly number[],
): Promise<readonly PersonWord[]> {
  const facts = (await loadCustomers(trx, environment, [customerId])).get(customerId)?.facts ?? {}
  const words = wordsOf((name) => facts[name]?.value)
  const reference = facts.externalRef?.value
  if (reference !== undefined && (await leadsTo(trx, environment, reference, customerId))) {
    words.push(asName(reference))
  }
  for (let i = 0; i < seqs.length; i += BODIES_AT_ONCE) {
    for (const stored of await loadStoredBodies(trx, seqs.slice(i, i + BODIES_AT_ONCE))) {
      if (stored.customerId === customerId) words.push(...wordsToldBy(stored, customerId))
    }
  }
  const telling = words.filter(
    ({ kind, word }) => word.length >= (kind === 'contact' ? SHORTEST_CONTACT : SHORTEST_NAME),
  )
  return [...new Map(telling.map((word) => [`${word.kind} ${word.word}`, word])).values()]
}

function wordsToldBy({ event, body }: StoredBody, customerId: string): readonly PersonWord[] {
  const json = body && parseJsonBody(body)
  const phones = json?.ok ? phonesOf(customerId, json.object) : []
  return [...wordsOf((name) => event?.customer[name]), ...phones.map(asContact)]
}

function wordsOf(told: (name: DetailName) => string | null | undefined): PersonWord[] {
  return [
    ...CONTACTS.flatMap((name) => contactsOf(told(name) ?? '')),
    ...NAMES.map((name) => asName(told(name) ?? '')),
  ]
}

/** An account of more digits than a JSON number holds is read as another number where it stands as one. */
function contactsOf(told: string): readonly PersonWord[] {
  const contact = asContact(told)
  if (!isNumber(contact.word) || Number.isSafeInteger(Number(contact.word))) return [contact]
  return [contact, asContact(String(Number(contact.word)))]
}

/** A reference that others have too, such as that of a campaign, tells of nobody. */
async function leadsTo(
  trx: Transaction<Database>,
  environment: Environment,
  reference: string,
  customerId: string,
): Promise<boolean> {
  const found = await findCustomersByReference(trx, environment, 'externalRef', reference)
  return found.length === 1 && found[0] === customerId
}
