/* Finds the customer whom an option of a command names: by email, reference, payment or subscription. */

import { LatchkeyError } from '../../errors.js'
import type { Environment } from '../../provider/event.js'
import type { Api, Page } from '../api.js'
import { otherThan } from '../context.js'
import { isUnknownProduct, pathOf } from '../known.js'

type CustomerPage = Page<{ readonly customerId: string | null }>

/** The name of an option that leads to a customer. */
export type PersonWay = 'email' | 'ref' | 'payment' | 'subscription'

const WHO: Readonly<Record<PersonWay, string>> = {
  email: 'has this email',
  ref: 'has this reference',
  payment: 'is named by an event of this payment',
  subscription: 'is named by an event of this subscription',
}

/** Nobody picks one from a longer list. */
const LISTED = 20
const EVENTS_PER_PAGE = 100

/**
 * The id of the one customer whom the option names.
 * @throws {LatchkeyError} `customer_not_found` for nobody; `usage` for several, with their ids
 */
export async function findPerson(api: Api, way: PersonWay, text: string): Promise<string> {
  const { environment } = api
  const { ids, hasMore } = await idsOf(api, environment, way, text)
  const [id, ...others] = ids
  const where = environment === undefined ? '' : ` in ${environment}`
  if (id === undefined) {
    const hint = environment === undefined ? '' : await elsewhere(api, otherThan(environment), way, text)
    throw new LatchkeyError('customer_not_found', `no customer ${WHO[way]}${where}${hint}`)
  }
  if (others.length === 0 && !hasMore) return id
  const count = hasMore ? `more than ${ids.length}` : ids.length
  const issues = ids.map((message) => ({ path: '', message }))
  const message = `--${way} names ${count} customers${where}: use the id of one instead`
  throw new LatchkeyError('usage', message, { issues })
}

/**
 * Makes sure that what was given as the product is not the id of a customer, given beside an option that names one.
 * @throws {LatchkeyError} `usage`
 */
export async function assertNoPerson(api: Api, way: PersonWay, productId: string, customerId: string) {
  if (productId !== customerId && !(await isPerson(api, productId))) return
  const message = `${productId} is a customer, not a product, and --${way} names the customer: leave one out`
  throw new LatchkeyError('usage', message)
}

/** Whether only a customer is known by this id, and no product; false if the API can't say. */
async function isPerson(api: Api, id: string): Promise<boolean> {
  const { environment } = api
  if (!(await isUnknownProduct(api, environment, id))) return false
  return api.get(pathOf('customers', id), { environment }).then(
    () => true,
    () => false,
  )
}

/** A hint must not fail the command with another error. */
async function elsewhere(api: Api, other: Environment, way: PersonWay, text: string): Promise<string> {
  const found = await idsOf(api, other, way, text).catch(() => null)
  return found === null || found.ids.length === 0
    ? ''
    : `; in ${other} it is ${found.ids.join(', ')}: add --environment ${other}`
}

function idsOf(api: Api, environment: Environment | undefined, way: PersonWay, text: string) {
  switch (way) {
    case 'email': {
      // In a body: URLs end up in logs.
      const request = { query: { environment, limit: LISTED }, body: { email: text } }
      return api.send<CustomerPage>('POST', '/entitlements/lookup', request).then(idsIn)
    }
    case 'ref':
      return api
        .get<CustomerPage>('/entitlements', { environment, externalRef: text, limit: LISTED })
        .then(idsIn)
    case 'payment':
      return namedByEvents(api, { environment, paymentId: text })
    case 'subscription':
      return namedByEvents(api, { environment, subscriptionId: text })
    default:
      return way satisfies never
  }
}

function idsIn({ items, pagination: { hasMore } }: CustomerPage) {
  return { ids: [...new Set(items.flatMap(({ customerId }) => customerId ?? []))], hasMore }
}

/** The customers in the newest events that name any. */
async function namedByEvents(
  api: Api,
  filter: Readonly<Partial<Record<'environment' | 'paymentId' | 'subscriptionId', string | undefined>>>,
) {
  let cursor: string | null = null
  for (;;) {
    const page: CustomerPage = await api.get('/events', { ...filter, limit: EVENTS_PER_PAGE, cursor })
    const { ids } = idsIn(page)
    cursor = page.pagination.nextCursor
    if (ids.length > 0 || cursor === null) return { ids, hasMore: false }
  }
}
