import type { PersonWord } from './fingerprints.js'
import { shownId } from './ids.js'
import { isJsonObject, type JsonObject } from './json.js'
import type { ErasedPeople } from './known-people.js'
import { customersNamedBy, isOfCustomer } from './named-customers.js'
import { eitherCasing, isCustomerField, isPersonField } from './person-fields.js'

/** Fields that stay of what is about an erased person: the payments service's own ids, words, amounts and times. */
const KEPT_FIELDS = eitherCasing(
  [
    ['id', 'object', 'type', 'apiVersion', 'status', 'currency', 'livemode'],
    ['customer', 'customerId', 'payment', 'paymentId', 'lastPayment', 'lastPaymentId', 'payoutId'],
    ['subscription', 'subscriptionId', 'product', 'productId'],
    ['priceCents', 'grossAmountCents', 'merchantNetCents', 'vatAmountCents', 'totalAmountCents'],
    ['refundedAmountCents', 'payoutAmountCents', 'valueUsd'],
    ['method', 'paymentMethod', 'rail', 'source', 'cryptoSettlementMode', 'declineCode', 'declineCategory'],
    ['cancelAtPeriodEnd', 'currentCycle', 'totalCycles', 'currentCycleDueAt'],
    ['createdAt', 'updatedAt', 'paidOutAt', 'expiresAt'],
  ].flat(),
)

/** Whatever the merchant or the buyer writes: no field in it is known to tell of the customer themselves. */
const FREE_FIELDS = eitherCasing(['metadata', 'customFields', 'customFieldsResponse'])

/** Whom an object is about: somebody erased, another customer, or nobody that is known. */
type Whose = 'theirs' | 'others' | 'unknown'

/** What is around a value. */
interface Place {
  readonly whose: Whose
  /** Whether it is the customer itself, so that its fields tell of them. */
  readonly isCustomer: boolean
  /** Whether it is within what anybody may have written. */
  readonly isFree: boolean
}

const GONE = undefined

/** What is asked about a body, as it is gone through. */
interface Questions {
  readonly isErased: ErasedPeople['isErased']
  readonly mentionsIn: ErasedPeople['mentionsIn']
  /** The data of a customer event is the customer, though nothing in it need say so. */
  readonly customerData: unknown
  /** To be told what other customers are known by themselves, and of what is theirs. */
  readonly onOwn: (text: string) => void
  readonly onTheirs: () => void
}

/**
 * The body without what it tells of erased customers; null: it tells nothing. What is about them keeps only what no
 * person is known by; of what is about others, or nobody, goes each text that tells of them. What other customers tell
 * of themselves stays to the letter, for it is their own: whoever comes back as a new customer is one.
 *
 * @param customerId whose event it is, as far as nothing in it says otherwise; null: not known
 */
export function redactBody(
  body: JsonObject,
  customerId: string | null,
  { isErased, mentionsIn }: ErasedPeople,
): JsonObject | null {
  const whose = customerId === null ? 'unknown' : isErased(customerId) ? 'theirs' : 'others'
  const place = { whose, isCustomer: false, isFree: false } as const
  const customerData = isOfCustomer(body) ? body.data : null
  const own = new Set<string>()
  let isTold = false
  redactObject(body, place, {
    isErased,
    customerData,
    mentionsIn(text, isPerson) {
      isTold ||= mentionsIn(text, isPerson).length > 0
      return []
    },
    onOwn: (text) => own.add(text.trim().toLowerCase()),
    onTheirs: () => {
      isTold = true
    },
  })
  if (!isTold) return null
  const left = redactObject(body, place, {
    isErased,
    customerData,
    mentionsIn: (text, isPerson) => mentionsIn(text, isPerson).filter(({ word }) => !own.has(word)),
    onOwn: () => {},
    onTheirs: () => {},
  })
  return left === body ? null : left
}

/** The very same object where nothing of it goes. */
function redactObject(object: JsonObject, place: Place, questions: Questions): JsonObject {
  const itself = place.isCustomer ? shownId(object) : null
  const named = itself === null ? customersNamedBy(object) : [itself, ...customersNamedBy(object)]
  const whose = whoseIs(object, named, place.whose, questions)
  if (whose === 'theirs') questions.onTheirs()
  const here = { ...place, whose, isCustomer: place.isCustomer || named.length > 0 }
  const changed = new Map<string, unknown>()
  for (const name of Object.keys(object)) {
    const left = redactMember(name, object[name], here, questions)
    if (left !== object[name]) changed.set(name, left)
  }
  if (changed.size === 0) return object
  const kept = Object.entries(object)
    .map(([name, value]) => [name, changed.has(name) ? changed.get(name) : value] as const)
    .filter(([, value]) => value !== GONE)
  return Object.fromEntries(kept)
}

/** `GONE` where nothing of it stays: no value of JSON is undefined. */
function redactMember(name: string, value: unknown, place: Place, questions: Questions): unknown {
  if (!isNested(value)) return isKept(name, value, place, questions) ? value : GONE
  if (questions.mentionsIn(name, false).length > 0) return GONE
  const within = {
    ...place,
    isCustomer: name === 'customer' || value === questions.customerData,
    isFree: place.isFree || FREE_FIELDS.has(name),
  }
  return redactNested(value, within, questions)
}

function whoseIs(
  object: JsonObject,
  named: readonly string[],
  around: Whose,
  { isErased, mentionsIn }: Questions,
): Whose {
  if (named.some(isErased)) return 'theirs'
  if (named.length > 0) return 'others'
  if (around !== 'unknown') return around
  const customer = isJsonObject(object.customer) ? object.customer : {}
  const isAddressed = (one: JsonObject): boolean =>
    Object.keys(one).some((name) => {
      const text = isPersonField(name) ? textOf(one[name]) : null
      return text !== null && mentionsIn(text, true).some(isContact)
    })
  return isAddressed(object) || isAddressed(customer) ? 'theirs' : 'unknown'
}

function isKept(
  name: string,
  value: unknown,
  { whose, isCustomer, isFree }: Place,
  { mentionsIn, onOwn }: Questions,
): boolean {
  if (KEPT_FIELDS.has(name)) return true
  if (whose === 'theirs') return false
  const text = textOf(value)
  if (mentionsIn(name, false).length > 0) return false
  if (text === null) return true
  const isDetail = isPersonField(name)
  if (whose === 'others' && !isFree && (isCustomerField(name) || (isCustomer && isDetail))) {
    onOwn(text)
    return true
  }
  return mentionsIn(text, isDetail).length === 0
}

function redactNested(value: object, place: Place, questions: Questions): unknown {
  if (isJsonObject(value)) return redactObject(value, place, questions)
  const elements: readonly unknown[] = Array.isArray(value) ? value : []
  const within = { ...place, isCustomer: false }
  const left = elements.map((one) => {
    if (isNested(one)) return redactNested(one, within, questions)
    return isKept('', one, within, questions) ? one : GONE
  })
  return left.every((one, i) => one === elements[i]) ? value : left.filter((one) => one !== GONE)
}

export function isContact({ kind }: PersonWord): boolean {
  return kind === 'contact'
}

/** Null for what is neither text nor a number. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
