import { type JsonBody, type JsonObject, parseJsonBody } from './json.js'
import type { ErasedPeople } from './known-people.js'
import { namedCustomers } from './named-customers.js'
import { readingsOfBytes } from './readings.js'
import { isContact, redactBody } from './redact-body.js'

/** What is left of a body: `erased` leaves nothing, `redacted` what it tells of others. */
export type Withheld =
  | { readonly why: 'erased'; readonly body: null }
  | { readonly why: 'redacted'; readonly body: Buffer }

const NOTHING_LEFT: Withheld = { why: 'erased', body: null }

/**
 * What has to be left out of the body of a delivery, since it tells of people who are erased; null: nothing. One that
 * names nobody by id is about them where it shows an id, an address or an account of theirs.
 * @param customerId whose event it is where it names nobody, if that is known
 * @param read a shorter way, for a body that is known to be sound
 */
export function withholdErased(
  body: Buffer,
  customerId: string | null,
  people: ErasedPeople,
  read: (body: Buffer) => JsonBody = parseJsonBody,
): Withheld | null {
  const json = read(body)
  // What can't be read for sure can't be parted either.
  if (!json.ok) return readingsOfBytes(body).some((text) => leadsToThem(text, people)) ? NOTHING_LEFT : null
  const named = namedCustomers(json.object)
  const isAllTheirs =
    named.size > 0
      ? [...named].every(people.isErased)
      : customerId === null
        ? textsIn(json.object).some((text) => leadsToThem(text, people))
        : people.isErased(customerId)
  if (isAllTheirs) return NOTHING_LEFT
  const left = redactBody(json.object, customerId, people)
  return left && { why: 'redacted', body: Buffer.from(JSON.stringify(left)) }
}

function leadsToThem(text: string, { mentionsId, mentionsIn }: ErasedPeople): boolean {
  return mentionsId(text) || mentionsIn(text, true).some(isContact)
}

/** Every text in a body, the names of its members too, and numbers as text. */
function textsIn(body: JsonObject): readonly string[] {
  const texts: string[] = []
  const open: object[] = [body]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [name, value] of Object.entries(next)) {
      if (!Array.isArray(next)) texts.push(name)
      if (typeof value === 'object' && value !== null) open.push(value)
      else texts.push(String(value))
    }
  }
  return texts
}
