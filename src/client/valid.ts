/*
 * What an app passes in: a mistake is named at once, since it would be answered with "no access" later. All of it throws
 * LatchkeyError: `invalid_options` for what an app is built with, `invalid_request` for a question.
 */

import { type ApiOptions, HEADER_TEXT, LatchkeyError } from './request.js'

export interface ClientOptions extends ApiOptions {
  /**
   * What an app learns while the daemon can't be asked. `throw`, the default: an error with the code `unavailable`.
   * `deny`: no access, with the reason `unavailable`. `stale`: the last known answer until it ends by itself, marked as
   * stale; without one, as `deny`. A refused key and a wrong question always throw.
   */
  readonly onUnavailable?: 'throw' | 'deny' | 'stale'
  /**
   * How many customers' answers are kept, 10,000 by default. They are used while the change log is streamed, which takes
   * one connection. 0: none, and there is no stream.
   */
  readonly maxCustomers?: number
  /** Milliseconds after which an answer is asked for again although nothing changed. Default 60,000. */
  readonly maxAge?: number
  /** Called once for each feature or product that the daemon does not know: most often a typo. Default: console.warn. */
  readonly onUnknown?: (message: string) => void
}

export interface WatchOptions {
  /** Ends it. */
  readonly signal?: AbortSignal
  /** A cursor of a change, or of an answer about access: begins with the first change after it. By default, now. */
  readonly after?: string | null
}

type Person = Readonly<
  { customerId: string; externalRef?: never } | { externalRef: string; customerId?: never }
>
type Needed = { readonly feature?: string; readonly productId?: string }
type Rule = readonly [isValid: (value: unknown) => boolean, form: string]

const ANY: Rule = [() => true, '']
const FUNCTION: Rule = [(value) => typeof value === 'function', 'a function']
const COUNT: Rule = [(value) => Number.isInteger(value) && Number(value) >= 0, 'a whole number from 0']

export function invalid(message: string, code = 'invalid_request'): LatchkeyError {
  return new LatchkeyError(code, message)
}

/** `ANY`: looked at where it is used. */
const RULES = {
  url: ANY,
  apiKey: ANY,
  timeout: ANY,
  clock: ANY,
  retries: COUNT,
  fetch: FUNCTION,
  random: FUNCTION,
  environment: [(value) => value === 'live' || value === 'sandbox', "'live' or 'sandbox'"],
  onUnavailable: [(value) => /^(throw|deny|stale)$/.test(`${value}`), "'throw', 'deny' or 'stale'"],
  maxCustomers: COUNT,
  maxAge: [(value) => typeof value === 'number' && value >= 0, 'a number of milliseconds from 0'],
  onUnknown: FUNCTION,
} satisfies Record<keyof ClientOptions, Rule>

export function validOptions(options: ClientOptions): ClientOptions {
  const rules = new Map<string, Rule>(Object.entries(RULES))
  for (const [name, value] of Object.entries(options ?? {})) {
    const rule = rules.get(name)
    if (rule === undefined) {
      const known = [...rules.keys()].join(', ')
      throw invalid(`createClient: there is no option \`${name}\`; use ${known}.`, 'invalid_options')
    }
    const [isValid, form] = rule
    if (value === undefined || isValid(value)) continue
    throw invalid(`createClient: \`${name}\` is ${value}; use ${form}.`, 'invalid_options')
  }
  return { ...options }
}

const NO_GATE =
  'A gate needs { client, customerId }: what createClient returns, and a function that returns the id; or an externalRef in its place.'

export function validGate(
  needed: Needed,
  options: Readonly<Partial<Record<'client' | 'customerId' | 'externalRef', unknown>>>,
): void {
  validNeeded(needed, 'invalid_options')
  const { client, customerId, externalRef } = options ?? {}
  const isOne = customerId === undefined || externalRef === undefined
  if (!client || !isOne || typeof (customerId ?? externalRef) !== 'function')
    throw invalid(NO_GATE, 'invalid_options')
}

export function validNeeded(needed: Needed, code = 'invalid_request'): void {
  const { feature, productId } = needed ?? {}
  const id = feature ?? productId
  const isOne = feature === undefined || productId === undefined
  if (isOne && typeof id === 'string' && id !== '') return
  throw invalid('Pass either a feature or a productId: a string that is not empty.', code)
}

export function validId(customerId: string): string {
  const isText = typeof customerId === 'string'
  if (isText && customerId !== '' && customerId.isWellFormed()) return customerId
  const given = isText ? 'empty, or not Unicode' : `of the type ${typeof customerId}`
  throw invalid(`The customer id is ${given}: pass the id of a customer of the payments service, a string.`)
}

export function validPathId(customerId: string): string {
  if (customerId !== '.' && customerId !== '..') return validId(customerId)
  throw invalid(`The customer id "${customerId}" can't be in a URL: ask with checkMany.`)
}

export function validRef(externalRef: string): string {
  if (typeof externalRef === 'string' && externalRef !== '' && externalRef.isWellFormed()) return externalRef
  throw invalid('The externalRef must be your own reference to the customer: a string that is not empty.')
}

/** The reference that stands in the place of a customer's id; null: it is an id. */
export function refIn(customer: string | { readonly externalRef: string }): string | null {
  const isRef = typeof customer === 'object' && customer !== null
  return isRef ? validRef(customer.externalRef) : null
}

export function validPairs<Pair extends Needed & Person>(pairs: readonly Pair[]) {
  if (!Array.isArray(pairs)) throw invalid('checkMany needs an array.')
  for (const pair of pairs as readonly Pair[]) {
    validNeeded(pair)
    if (pair.externalRef === undefined) validId(pair.customerId)
    else if (pair.customerId === undefined) validRef(pair.externalRef)
    else throw invalid('Pass either a customerId or an externalRef, not both.')
  }
  return pairs
}

export function validWatch(handler: unknown, after: string | null): void {
  if (typeof handler !== 'function') throw invalid('watch needs a handler.')
  // An empty header would mean now, and what no header can hold would look like a daemon that is away.
  if (after !== null && !HEADER_TEXT.test(`${after}`.trim()))
    throw invalid('watch: `after` must be a cursor, or left out.')
}

/** More ids than an app has in its code. */
export const IDS_REMEMBERED = 1_000

export function nameOf({ feature, productId }: Needed): string {
  return feature === undefined ? `product "${productId}"` : `feature "${feature}"`
}

/** Says once of each feature or product that the daemon does not know it. */
// biome-ignore lint/suspicious/noConsole: it is the only log that every runtime has
export function createReport(onUnknown: (message: string) => void = console.warn) {
  const reported = new Set<string>()
  return (needed: Needed): void => {
    const name = nameOf(needed)
    if (reported.has(name) || reported.size >= IDS_REMEMBERED) return
    reported.add(name)
    const where = needed.feature === undefined ? 'products.<id>' : 'products.<id>.features'
    onUnknown(
      `Latchkey knows no ${name}, so nobody has it. Check the id, and ${where} in the daemon's config.`,
    )
  }
}
