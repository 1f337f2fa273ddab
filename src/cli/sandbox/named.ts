/* How a person names a record of the sandbox: by its id, or by what they know instead. */

import { LatchkeyError } from '../../errors.js'
import type { Act, SandboxRequest } from './acts.js'

export type AskSandbox = (request: SandboxRequest) => Promise<unknown>

interface Page<Item> {
  readonly items: readonly Item[]
  readonly pagination: { readonly nextCursor: string | null }
}

interface Named {
  readonly id: string
  readonly name?: string
  readonly email?: string
  readonly customerId?: string
  readonly subscriptionId?: string
}

/** The newest record of a list that the person means. @throws {LatchkeyError} `usage` */
async function newest(
  ask: AskSandbox,
  list: string,
  text: string,
  isMeant: (record: Named) => boolean,
): Promise<string> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const path: string = `/v3/${list}?limit=100${cursor && `&cursor=${cursor}`}`
    const { items, pagination } = (await ask({ method: 'GET', path })) as Page<Named>
    const found = items.find(isMeant)
    if (found !== undefined) return found.id
    cursor = pagination.nextCursor
  }
  const todo = `create one with \`latchkey sandbox create\``
  throw new LatchkeyError('usage', `the sandbox has no ${list} for ${JSON.stringify(text)}: ${todo}`)
}

/**
 * The id that an act needs. A customer may be named by email, a payment by its subscription or its customer, a
 * subscription by its customer, and of several the newest is meant.
 */
export async function idOf(ask: AskSandbox, { argument }: Act, text: string): Promise<string> {
  if (text.includes('@')) {
    const email = text.toLowerCase()
    const customer = await newest(ask, 'customers', text, (one) => one.email?.toLowerCase() === email)
    if (argument !== 'payment' && argument !== 'subscription') return customer
    return newest(ask, `${argument}s`, text, ({ customerId }) => customerId === customer)
  }
  const isOfPayment = argument === 'payment' || argument === 'charged'
  if (!isOfPayment || !text.startsWith('sub_')) return text
  return newest(ask, 'payments', text, ({ subscriptionId }) => subscriptionId === text)
}

/** A product may be named by its name. */
export async function productOf(ask: AskSandbox, text: string): Promise<string> {
  return text.startsWith('pro_') ? text : newest(ask, 'products', text, ({ name }) => name === text)
}
