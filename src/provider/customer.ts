import { DETAIL_NAMES, ofEach } from './accounts.js'
import type { CustomerDetails } from './event.js'
import { fieldsOf, id, text } from './fields.js'
import type { JsonObject } from './json.js'

/** The name of a detail in objects that are not about the person alone. */
export function ofCustomer(detail: string): string {
  return `customer${detail.charAt(0).toUpperCase()}${detail.slice(1)}`
}

/** A person of whom nothing is known. */
export const NO_DETAILS: CustomerDetails = ofEach(DETAIL_NAMES, () => null)

/** A `customer` field: an object that describes the person, or just their id. */
export function personOf(customer: unknown): JsonObject {
  return typeof customer === 'string' ? { id: customer } : fieldsOf(customer)
}

/** The customer's id in `data`: in its `customer` field, else in a field of its own. */
export function customerIdOf(data: JsonObject): string | null {
  return id(personOf(data.customer).id) ?? flatCustomerIdOf(data)
}

export function flatCustomerIdOf(data: JsonObject): string | null {
  return id(data.customerId, data.customer_id)
}

/** The customer's details in `data`: in its `customer` field, else in fields of its own. */
export function customerOf(data: JsonObject): CustomerDetails {
  return detailsOf(personOf(data.customer), data)
}

/** Takes each detail from the `customer` object, or else from a field of `data` itself. */
export function detailsOf(person: JsonObject, data: JsonObject): CustomerDetails {
  return {
    email: text(person.email) ?? text(data.customerEmail, data.customer_email),
    name: text(person.name) ?? fullNameOf(person) ?? text(data.customerName, data.customer_name),
    communityId:
      text(person.communityId, person.community_id) ??
      text(data.customerCommunityId, data.customer_community_id),
    communityUsername:
      text(person.communityUsername, person.community_username) ??
      text(data.customerCommunityUsername, data.customer_community_username),
    messengerId:
      text(person.messengerId, person.messenger_id) ??
      text(data.customerMessengerId, data.customer_messenger_id),
    messengerUsername:
      text(person.messengerUsername, person.messenger_username) ??
      text(data.customerMessengerUsername, data.customer_messenger_username),
  }
}

/** Takes each detail from the first source that has it. */
export function firstDetails(one: CustomerDetails, other: CustomerDetails): CustomerDetails {
  return {
    email: one.email ?? other.email,
    name: one.name ?? other.name,
    communityId: one.communityId ?? other.communityId,
    communityUsername: one.communityUsername ?? other.communityUsername,
    messengerId: one.messengerId ?? other.messengerId,
    messengerUsername: one.messengerUsername ?? other.messengerUsername,
  }
}

function fullNameOf(person: JsonObject): string | null {
  const first = text(person.firstName, person.first_name)
  const last = text(person.lastName, person.last_name)
  return first === null || last === null ? (first ?? last) : `${first} ${last}`
}
