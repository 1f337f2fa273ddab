/* Finds customers by the beginning of what they are known by: an id, a reference, an email, an account or its name. */

import { sql } from 'kysely'
import { SEARCH_NAMES } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { type CustomerRecord, loadCustomers, lookupValue } from './customers.js'
import type { Db } from './schema.js'

/** What customers are found by that is no personal data. */
const PLAIN_WAYS = ['customerId', 'reference'] as const
/** What customers are found by: also the order in which they are listed. */
export const SEARCH_WAYS = [...PLAIN_WAYS, ...SEARCH_NAMES] as const
export type SearchWay = (typeof SEARCH_WAYS)[number]

/** Why a customer is found, and the place of that in the list. */
export interface Match {
  readonly by: SearchWay
  /** In lower case where that does not matter. */
  readonly value: string
  readonly customerId: string
}

export interface CustomerSearch {
  readonly environment: Environment
  /** Not a pattern: every character stands for itself. */
  readonly prefix: string
  /** The name of the references to look at. */
  readonly reference: string
  /** Whether to look at personal data, too. */
  readonly isPersonal: boolean
  /** Null: from the beginning. */
  readonly after: Match | null
  readonly limit: number
}

export interface FoundCustomer extends Match {
  readonly facts: CustomerRecord['facts']
}

/** How many matches one answer looks at: some milliseconds, even if all of them were listed by an earlier way. */
const MOST_SEEN = 400

/**
 * Each customer once, by the first way that leads to them. Every way is read by its own index, so that the cost depends
 * on what is looked at, and not on how many customers there are. `next`: where the next page begins, which may be empty;
 * null: there is no more.
 */
export async function searchCustomers(db: Db, search: CustomerSearch) {
  const { environment, after, limit } = search
  const ways: readonly SearchWay[] = search.isPersonal ? SEARCH_WAYS : PLAIN_WAYS
  const items: FoundCustomer[] = []
  let next = after
  let seen = 0
  // A place among personal data is the end for a key that may not see it.
  for (const by of ways.slice(after === null ? 0 : SEARCH_WAYS.indexOf(after.by))) {
    let page: readonly Match[]
    do {
      page = await readPage(db, search, next?.by === by ? next : { by, value: '', customerId: '' })
      const customerIds = [...new Set(page.map(({ customerId }) => customerId))]
      const customers = await loadCustomers(db, environment, customerIds)
      const references = await firstReferences(db, search, by === 'customerId' ? [] : customerIds)
      for (const match of page) {
        if (items.length === limit) return { items, next }
        const facts = customers.get(match.customerId)?.facts ?? {}
        if (isFirst(match, search, references, facts)) items.push({ ...match, facts })
        next = match
      }
      seen += page.length
      if (seen >= MOST_SEEN) return { items, next }
    } while (page.length === limit)
  }
  return { items, next: null }
}

/** The next matches of one way, ordered by value and customer. */
async function readPage(db: Db, search: CustomerSearch, { by, value, customerId }: Match) {
  const { environment, reference, limit } = search
  const prefix = prefixFor(by, search.prefix)
  if (prefix === '') return []
  const isBegun = customerId !== '' && value.startsWith(prefix)
  if (by === 'customerId') {
    const after = isBegun ? sql`customer_id > ${customerId}` : sql`customer_id >= ${prefix}`
    const { rows } = await sql<Match>`
      select ${sql.lit(by)} as "by", customer_id as value, customer_id as "customerId" from customers
      where environment = ${environment} and ${after} and ${isBelow('customer_id', endOf(prefix))}
      order by customer_id limit ${limit}`.execute(db)
    return rows
  }
  // The only lower bound: of two, SQLite may enter the index at the earlier one.
  const after = isBegun ? [value, customerId] : [prefix, '']
  const table = by === 'reference' ? 'customer_references' : 'customer_lookups'
  const { rows } = await sql<Match>`
    select ${sql.lit(by)} as "by", value, customer_id as "customerId" from ${sql.table(table)}
    where environment = ${environment} and name = ${by === 'reference' ? reference : by}
      and (value, customer_id) > (${sql.join(after)}) and ${isBelow('value', endOf(prefix))}
    order by value, customer_id limit ${limit}`.execute(db)
  return rows
}

/** The first reference of each of these customers that begins with the prefix. */
async function firstReferences(
  db: Db,
  { environment, reference, prefix }: CustomerSearch,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (customerIds.length === 0) return new Map()
  const { rows } = await sql<Pick<Match, 'customerId' | 'value'>>`
    select customer_id as "customerId", min(value) as value from customer_references
    where environment = ${environment} and customer_id in (${sql.join(customerIds)}) and name = ${reference}
      and value >= ${prefix} and ${isBelow('value', endOf(prefix))} group by customer_id`.execute(db)
  return new Map(rows.map(({ customerId, value }) => [customerId, value]))
}

/** Whether nothing that comes earlier in the list leads to the same customer. */
function isFirst(
  { by, value, customerId }: Match,
  { prefix }: CustomerSearch,
  references: ReadonlyMap<string, string>,
  facts: CustomerRecord['facts'],
): boolean {
  if (by === 'customerId') return true
  if (customerId.startsWith(prefix)) return false
  if (by === 'reference') return references.get(customerId) === value
  const earlier = SEARCH_NAMES.slice(0, SEARCH_NAMES.indexOf(by))
  const isFoundBy = (name: (typeof SEARCH_NAMES)[number]) => {
    const own = prefixFor(name, prefix)
    return own !== '' && lookupValue(name, facts[name]?.value ?? '').startsWith(own)
  }
  return !references.has(customerId) && !earlier.some(isFoundBy)
}

/** What a value has to begin with: people write `@ada` for the name of an account. */
function prefixFor(way: SearchWay, prefix: string): string {
  return lookupValue(way, way.endsWith('Username') ? prefix.replace(/^@/, '') : prefix)
}

/** A range serves every database's index, and no character in it has a meaning of its own. */
function isBelow(column: string, end: string | null) {
  return end === null ? sql`true` : sql`${sql.ref(column)} < ${end}`
}

const LAST_CODE_POINT = 0x10ffff

/** The first text that sorts after all that begin with this one, by code points as databases sort; null: there is none. */
function endOf(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0)
  while (points.at(-1) === LAST_CODE_POINT) points.pop()
  const last = points.pop()
  if (last === undefined) return null
  // UTF-16 surrogates are no characters.
  const next = last === 0xd7ff ? 0xe000 : last + 1
  return String.fromCodePoint(...points, next)
}
