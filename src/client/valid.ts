/* What an app passes in: a mistake is named at once, since it would be answered with "no access" later. */

import { LatchkeyError } from './request.js'

type Needed = { readonly feature?: string; readonly productId?: string }
type Rule = readonly [isValid: (value: unknown) => boolean, form: string]

/** Of the options with a default. */
const RULES: Readonly<Record<string, Rule>> = {
  environment: [(value) => value === 'live' || value === 'sandbox', "'live' or 'sandbox'"],
  onUnavailable: [
    (value) => value === 'throw' || value === 'deny' || value === 'stale',
    "'throw', 'deny' or 'stale'",
  ],
  maxCustomers: [(value) => Number.isInteger(value) && Number(value) >= 0, 'a whole number from 0'],
  maxAge: [(value) => typeof value === 'number' && value >= 0, 'a number of milliseconds from 0'],
  onUnknown: [(value) => typeof value === 'function', 'a function'],
}

/** @throws LatchkeyError `invalid_options` */
export function validOptions<Options extends object>(options: Options): Options {
  for (const [name, value] of Object.entries(options ?? {})) {
    const [isValid, form] = RULES[name] ?? []
    if (value === undefined || isValid === undefined || isValid(value)) continue
    throw new LatchkeyError('invalid_options', `createClient: \`${name}\` is ${value}; use ${form}.`)
  }
  return { ...options }
}

/** @throws LatchkeyError `invalid_options` */
export function validGate(
  needed: Needed,
  options: { readonly client: unknown; readonly customerId: unknown },
): void {
  validNeeded(needed, 'invalid_options')
  if (options?.client && typeof options.customerId === 'function') return
  throw new LatchkeyError(
    'invalid_options',
    'A gate needs { client, customerId }: what createClient returns, and a function that returns the id.',
  )
}

/** @throws LatchkeyError */
export function validNeeded(needed: Needed, code = 'invalid_request'): void {
  const { feature, productId } = needed ?? {}
  const id = feature ?? productId
  const isOne = feature === undefined || productId === undefined
  if (isOne && typeof id === 'string' && id !== '') return
  throw new LatchkeyError(code, 'Pass either a feature or a productId: a string that is not empty.')
}

/** @throws LatchkeyError `invalid_request` */
export function validId(customerId: string): string {
  const isText = typeof customerId === 'string'
  if (isText && customerId !== '' && customerId.isWellFormed()) return customerId
  const given = isText ? 'empty, or not Unicode' : `of the type ${typeof customerId}`
  throw new LatchkeyError(
    'invalid_request',
    `The customer id is ${given}: pass the id of a customer of the payments service, a string.`,
  )
}
