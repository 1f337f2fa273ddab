import { isJsonObject, type JsonObject } from './json.js'
import { namedCustomers } from './named-customers.js'
import { eitherCasing } from './person-fields.js'

const PHONE_FIELDS = eitherCasing(['phone', 'phoneNumber', 'customerPhone', 'customerPhoneNumber'])

/** The phone numbers in a body that names this customer and nobody else. */
export function phonesOf(customerId: string, body: JsonObject): readonly string[] {
  if ([...namedCustomers(body)].some((id) => id !== customerId)) return []
  const found: string[] = []
  const open: object[] = [body]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [name, value] of Object.entries(next)) {
      if (typeof value === 'object' && value !== null) open.push(value)
      else if (typeof value === 'string' && isJsonObject(next) && PHONE_FIELDS.has(name)) found.push(value)
    }
  }
  return found
}
