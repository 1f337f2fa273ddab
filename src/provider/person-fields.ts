/** What tells of a person, in an object that is one; the merchant's own reference too. */
const DETAILS = [
  ['email', 'phone', 'phoneNumber', 'name', 'firstName', 'lastName', 'fullName', 'username'],
  ['communityId', 'communityUsername', 'messengerId', 'messengerUsername', 'externalRef'],
].flat()

const CUSTOMER_DETAILS: ReadonlySet<string> = eitherCasing([
  ...DETAILS.map((name) => `customer${name.charAt(0).toUpperCase()}${name.slice(1)}`),
  'externalRef',
])
const PERSON_DETAILS: ReadonlySet<string> = new Set([...eitherCasing(DETAILS), ...CUSTOMER_DETAILS])

/** Whether a field tells of a person, whoever that is. */
export function isPersonField(name: string): boolean {
  return PERSON_DETAILS.has(name)
}

/** Whether a field tells of the customer whom its object, or one around it, is about. */
export function isCustomerField(name: string): boolean {
  return CUSTOMER_DETAILS.has(name)
}

/** Names in camelCase, and the same in snake_case: as the wire has either. */
export function eitherCasing(names: readonly string[]): ReadonlySet<string> {
  const inSnakeCase = names.map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
  return new Set([...names, ...inSnakeCase])
}
