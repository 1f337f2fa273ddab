import { shownId } from './ids.js'
import { isJsonObject, type JsonObject } from './json.js'

/** Every customer whom the body of an event names, wherever in it, so that a list of payments names many. */
export function namedCustomers(body: JsonObject): ReadonlySet<string> {
  const named = new Set<string>()
  const open: object[] = [body]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (isJsonObject(next)) for (const id of customersNamedBy(next)) named.add(id)
    for (const inner of Object.values(next)) {
      if (typeof inner === 'object' && inner !== null) open.push(inner)
    }
  }
  // The data of a customer event is the customer, though nothing in it need say so.
  const id = isOfCustomer(body) ? shownId(body.data) : null
  if (id !== null) named.add(id)
  return named
}

/** Whether the data of an event is a customer. */
export function isOfCustomer({ type }: JsonObject): boolean {
  return typeof type === 'string' && type.startsWith('customer.')
}

/** Whom an object is about by its own fields. */
export function customersNamedBy(object: JsonObject): readonly string[] {
  const { customer, customerId, customer_id: snakeCased } = object
  const own = object.object === 'customer' ? object : undefined
  // Most objects name nobody, and every delivery has many.
  const fields = [customer, customerId, snakeCased, own].filter((field) => field !== undefined)
  return fields.map(shownId).filter((id) => id !== null)
}
