import type { CustomerDetails } from './event.js'
import { eitherCasing, id, type ShownOf, text } from './fields.js'

/** What any generation shows of a person, as an object of its own. */
const personObject = eitherCasing({
  id,
  email: text,
  name: text,
  firstName: text,
  lastName: text,
  communityId: text,
  communityUsername: text,
  messengerId: text,
  messengerUsername: text,
})

/** A `customer` field: the person, or nothing but their id. */
export const person: typeof personObject = (value) =>
  personObject(typeof value === 'string' ? { id: value } : value)
export type Person = Partial<ReturnType<typeof person>>

/** What payments and subscriptions show of a person among their own fields. */
export const flatPersonFields = {
  customerId: id,
  customerEmail: text,
  customerName: text,
  customerCommunityId: text,
  customerCommunityUsername: text,
  customerMessengerId: text,
  customerMessengerUsername: text,
}
type FlatPerson = ShownOf<typeof flatPersonFields>

export function flatPersonOf(fields: FlatPerson): Person {
  return {
    id: fields.customerId,
    email: fields.customerEmail,
    name: fields.customerName,
    communityId: fields.customerCommunityId,
    communityUsername: fields.customerCommunityUsername,
    messengerId: fields.customerMessengerId,
    messengerUsername: fields.customerMessengerUsername,
  }
}

/** What an event tells about its customer, of each detail the first that is shown. All `persons` are the customer. */
export function customerOf(persons: readonly (Person | undefined)[]): {
  customerId: string | null
  customer: CustomerDetails
} {
  const first = (detail: (person: Person) => string | null | undefined): string | null => {
    for (const person of persons) {
      const shown = person && detail(person)
      if (shown) return shown
    }
    return null
  }
  return {
    customerId: first((person) => person.id),
    customer: {
      email: first((person) => person.email),
      name: first((person) => person.name ?? fullName(person)),
      communityId: first((person) => person.communityId),
      communityUsername: first((person) => person.communityUsername),
      messengerId: first((person) => person.messengerId),
      messengerUsername: first((person) => person.messengerUsername),
    },
  }
}

function fullName({ firstName, lastName }: Person): string {
  return [firstName, lastName].filter(Boolean).join(' ')
}
