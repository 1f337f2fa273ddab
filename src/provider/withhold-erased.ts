import { type JsonBody, type JsonObject, parseJsonBody } from './json.js'
import { mentions } from './mentions.js'
import { namedCustomers } from './named-customers.js'
import { redactBody } from './redact-body.js'

/** Those who are erased, as far as a body can name them. */
export interface ErasedPeople {
  readonly isErased: (customerId: string) => boolean
  /** Ids, addresses and the like, in lower case: where nobody is named, these tell whom a body is about. */
  readonly knownBy: () => readonly string[]
}

/** What is left of a body: `erased` leaves nothing, `redacted` what it tells of others. */
export type Withheld =
  | { readonly why: 'erased'; readonly body: null }
  | { readonly why: 'redacted'; readonly body: Buffer }

const NOTHING_LEFT: Withheld = { why: 'erased', body: null }

/**
 * What has to be left out of the body of a delivery, since people whom it names are erased; null: nothing.
 * @param customerId whose event it is where it names nobody, if that is known
 * @param read a shorter way, for a body that is known to be sound
 */
export function withholdErased(
  body: Buffer,
  customerId: string | null,
  { isErased, knownBy }: ErasedPeople,
  read: (body: Buffer) => JsonBody = parseJsonBody,
): Withheld | null {
  const json = read(body)
  // What can't be read for sure can't be parted either.
  if (!json.ok) return mentions(body.toString('utf8'), knownBy()) ? NOTHING_LEFT : null
  const named = namedCustomers(json.object)
  if (named.size === 0) {
    const isTheirs =
      customerId === null ? mentions(JSON.stringify(json.object), knownBy()) : isErased(customerId)
    return isTheirs ? NOTHING_LEFT : null
  }
  const erased = [...named].filter(isErased)
  if (erased.length === 0) return null
  return erased.length === named.size ? NOTHING_LEFT : redacted(json.object, isErased)
}

function redacted(body: JsonObject, isErased: ErasedPeople['isErased']): Withheld {
  return { why: 'redacted', body: Buffer.from(JSON.stringify(redactBody(body, isErased))) }
}
