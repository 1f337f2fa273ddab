import { DETAIL_NAMES } from './accounts.js'
import { NO_DETAILS, ofCustomer } from './customer.js'
import type { NormalizedEvent } from './event.js'
import { shownId } from './ids.js'
import { isJsonObject, type JsonObject, parseJsonBody } from './json.js'

/** The documented fields that describe a person, and free text by the merchant or the buyer about them. */
const PERSON_FIELDS = [
  ...['phone', 'phoneNumber', 'firstName', 'lastName', 'fullName', 'username'],
  ...DETAIL_NAMES,
  ...['address', 'billingAddress'],
]
const FREE_FIELDS = ['externalRef', 'metadata', 'customFields', 'customFieldsResponse']

const EMPTIED: ReadonlySet<string> = new Set(
  [...PERSON_FIELDS, ...PERSON_FIELDS.map(ofCustomer), ...FREE_FIELDS].flatMap((name) => [
    name,
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  ]),
)

/** The stored parts of a delivery that may describe a person. */
export interface Redactable {
  /** Null: the body could not be used. */
  readonly event: NormalizedEvent | null
  /** The owner of the event's source, used if the event names no customer. Null: unknown. */
  readonly owner: string | null
  /** Null: already removed. */
  readonly body: Buffer | null
}

/** The parts that remain. */
export interface Redacted {
  readonly event: NormalizedEvent | null
  readonly body: Buffer | null
  /** `erased`: nothing of the body remains. `redacted`: the parts about others remain. Null: there was no body. */
  readonly removed: 'erased' | 'redacted' | null
}

/**
 * Removes the data of erased people from a delivery. It finds people by their ids, and details by the fields that hold
 * them; it does not search texts.
 *
 * @returns null if there is nothing to remove
 */
export function redact({ event, owner, body }: Redactable, erased: ReadonlySet<string>): Redacted | null {
  if (event === null) {
    return body !== null && holdsId(body, erased) ? { event, body: null, removed: 'erased' } : null
  }
  const customerId = event.customerId ?? owner
  const isTheirs = customerId !== null && erased.has(customerId)
  // An event that names another customer is about that customer.
  if (customerId !== null && !isTheirs) return null
  if (event.subject === 'manual') return redactAct(event)
  const left = body === null ? 'untouched' : redactBody(body, isTheirs, erased)
  if (left === 'untouched') {
    return isTheirs ? ifChanged(event, { event: withoutPerson(event), body, removed: null }) : null
  }
  return {
    event: isTheirs || left === null ? withoutPerson(event) : event,
    body: left,
    removed: left === null ? 'erased' : 'redacted',
  }
}

/**
 * The same event without anything that identifies the customer. The provider's own ids stay, since access follows
 * from them: the event keeps its effect.
 */
export function withoutPerson(event: NormalizedEvent): NormalizedEvent {
  const left = { ...event, customer: NO_DETAILS, externalRef: null, metadata: {} }
  // The reason of an erasure is the operator's own record; any other reason may be about the person.
  return left.subject === 'manual' && left.type !== 'manual.erased' ? { ...left, reason: null } : left
}

/** The body of a change by hand is only its event: it is rewritten from the redacted event. */
function redactAct(event: NormalizedEvent): Redacted | null {
  const left = withoutPerson(event)
  return ifChanged(event, { event: left, body: Buffer.from(JSON.stringify(left)), removed: 'redacted' })
}

function ifChanged(event: NormalizedEvent, left: Redacted): Redacted | null {
  return JSON.stringify(event) === JSON.stringify(left.event) ? null : left
}

/**
 * The rest of a body; null: nothing is left.
 * @param isTheirs whether it belongs to an erased person, whatever it names
 */
export function redactBody(
  body: Buffer,
  isTheirs: boolean,
  erased: ReadonlySet<string>,
): Buffer | null | 'untouched' {
  const json = parseJsonBody(body)
  // It was valid when received. A body that can't be parsed can't be redacted in part.
  if (!json.ok) return isTheirs || holdsId(body, erased) ? null : 'untouched'
  const named = customersIn(json.object)
  if (!named.some((id) => erased.has(id))) return isTheirs ? null : 'untouched'
  if (named.every((id) => erased.has(id))) return null
  const left = JSON.stringify(withoutFields(json.object, isTheirs, erased))
  return left === JSON.stringify(json.object) ? 'untouched' : Buffer.from(left)
}

/** Every customer named in the objects of a body; ids in metadata are the merchant's own. */
function customersIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(customersIn)
  if (!isJsonObject(value)) return []
  const inner = Object.entries(value).filter(([name]) => !EMPTIED.has(name))
  return [...customersNamedBy(value), ...inner.flatMap(([, one]) => customersIn(one))]
}

/** The customer that an object is about, by its own fields. */
function customersNamedBy(object: JsonObject): readonly string[] {
  const { customer, customerId, customer_id: snakeCased } = object
  const own = object.object === 'customer' ? object : undefined
  return [customer, customerId, snakeCased, own].map(shownId).filter((id) => id !== null)
}

/** @param isTheirs whether the enclosing object is about an erased person */
function withoutFields(value: unknown, isTheirs: boolean, erased: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutFields(one, isTheirs, erased))
  if (!isJsonObject(value)) return value
  const named = customersNamedBy(value)
  const isOfThem = named.length === 0 ? isTheirs : named.some((id) => erased.has(id))
  const left = Object.entries(value).filter(([name]) => !(isOfThem && EMPTIED.has(name)))
  return Object.fromEntries(left.map(([name, inner]) => [name, withoutFields(inner, isOfThem, erased)]))
}

const ID_CHARACTER = /[\p{L}\p{N}_-]/u

/** Whether unusable bytes contain any of these ids as a whole word: `cus_1` is not in `cus_12`. */
function holdsId(body: Buffer, ids: ReadonlySet<string>): boolean {
  const text = body.toString('utf8')
  return [...ids].some((id) => {
    for (let at = text.indexOf(id); at !== -1; at = text.indexOf(id, at + 1)) {
      const around = [text.charAt(at - 1), text.charAt(at + id.length)]
      if (!around.some((character) => ID_CHARACTER.test(character))) return true
    }
    return false
  })
}
