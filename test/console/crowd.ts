/* Very many customers in a store, as the program would have written them. */

import { createHash } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import { signBody } from '../../src/provider/signature.js'
import { deliveryOf } from '../ingest/wire.js'
import { sentEvent } from '../stories.js'
import { databaseIn, SECRET, takeIn } from '../world.js'

const DAY_MS = 86_400_000

/** The number of the first customer, and the time of what happened to them: no other text or number holds these. */
const FIRST = '000000'
const FIRST_AT = Date.UTC(2020, 8, 13)
const FIRST_AT_IN_WORDS = new Date(FIRST_AT).toISOString()

const numbered = (before: string, n: number, after = ''): string =>
  `${before}${String(n).padStart(FIRST.length, '0')}${after}`
export const crowdId = (n: number): string => numbered('cus_crowd_', n)
export const crowdEmail = (n: number): string => numbered('reader-', n, '@crowd.example')
export const crowdReference = (n: number): string => numbered('crm-crowd-', n)

/** What one event writes: a row in each. */
const TABLES = [
  'events',
  'sources',
  'entitlements',
  'changes',
  'customers',
  'customer_references',
  'customer_lookups',
] as const

/**
 * Has the store of a new folder hold so many customers who once paid for Silver by card, over the year that ended a month
 * ago. The program takes in the event of the first one; the others are copies of the rows that it wrote, under other
 * names and times. That it would have written the same of them is what a verification of the store shows.
 */
export async function storeCrowd(folder: string, customers: number): Promise<void> {
  const { body } = sentEvent(numbered('evt_crowd_', 0), 'payment.authorized', FIRST_AT, {
    object: 'payment',
    id: numbered('pay_crowd_', 0),
    method: 'CARD',
    external_ref: crowdReference(0),
    customer: { object: 'customer', id: crowdId(0), email: crowdEmail(0), name: numbered('Reader ', 0) },
    product: { object: 'product', id: 'pro_silver' },
  })
  const first = deliveryOf(body, { endpoint: 'live', receivedAt: FIRST_AT })
  await takeIn(folder, [first], () => FIRST_AT)
  const db = new Sqlite(databaseIn(folder))
  // Nobody else is here, and nobody wants a half of it.
  db.pragma('journal_mode = MEMORY')
  db.pragma('synchronous = OFF')
  db.pragma('temp_store = MEMORY')
  db.pragma('cache_size = -400000')
  db.function('sha256', (text) => createHash('sha256').update(String(text)).digest('hex'))
  db.function('signed', (text, at) => {
    const timestamp = String(Math.floor(Number(at) / 1000))
    const signature = signBody(SECRET, timestamp, Buffer.from(String(text)))
    return JSON.stringify({ event: null, timestamp, signature })
  })
  db.transaction(() => {
    db.prepare(
      `create temp table others as
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < @last),
        dated as (select n, printf('%0${FIRST.length}d', n) as number, cast(@from + n * @step as integer) as at from numbers),
        told as (select *, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') as at_in_words from dated)
      select *, ${textOf('body', body)} as body from told`,
    ).run({
      last: customers - 1,
      from: Date.now() - 395 * DAY_MS,
      step: Math.floor((365 * DAY_MS) / customers),
      body,
    })
    for (const table of TABLES) copyRow(db, table)
  })()
  db.pragma('journal_mode = WAL')
  db.close()
}

/** Writes the one row of a table once more for each of the others. */
function copyRow(db: Sqlite.Database, table: string): void {
  const row = db.prepare(`select * from ${table}`).get() as Readonly<Record<string, Cell>>
  const names = Object.keys(row)
  const cells = names.map((name) => cellOf(name, row[name] ?? null))
  const columns = names.map((name) => `"${name}"`).join(', ')
  db.prepare(`insert into ${table} (${columns}) select ${cells.join(', ')} from others`).run(row)
}

type Cell = string | number | Buffer | null

/** What the same column of another customer's row holds. */
function cellOf(name: string, value: Cell): string {
  switch (name) {
    case 'seq':
    case 'cursor':
      return `@${name} + n`
    case 'body':
      return 'cast(body as blob)'
    case 'body_sha256':
      return 'sha256(body)'
    case 'headers':
      return 'signed(body, at)'
    // It begins with the number of the event.
    case 'history':
      return `replace(${textOf(name, String(value))}, '[[1,', '[[' || (1 + n) || ',')`
    default:
      if (value === FIRST_AT) return 'at'
      return typeof value === 'string' ? textOf(name, value) : `@${name}`
  }
}

/** The same text about another customer. */
function textOf(name: string, text: string): string {
  const changes = [
    [FIRST, 'number'],
    [String(FIRST_AT), 'at'],
    [FIRST_AT_IN_WORDS, 'at_in_words'],
  ] as const
  return changes
    .filter(([first]) => text.includes(first))
    .reduce((told, [first, other]) => `replace(${told}, '${first}', ${other})`, `@${name}`)
}
