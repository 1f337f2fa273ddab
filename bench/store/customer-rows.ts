import type Sqlite from 'better-sqlite3'

export type Cell = string | number | bigint | Buffer | null
export type Row = Readonly<Record<string, Cell>>

/** Every table that events write to, with a column of ids that begin with this prefix and a customer's key. */
export const CUSTOMER_TABLES = {
  events: { column: 'event_id', prefix: 'evt_' },
  payment_links: { column: 'payment_id', prefix: 'pay_' },
  sources: { column: 'customer_id', prefix: 'cus_' },
  entitlements: { column: 'customer_id', prefix: 'cus_' },
  changes: { column: 'customer_id', prefix: 'cus_' },
  customers: { column: 'customer_id', prefix: 'cus_' },
  customer_references: { column: 'customer_id', prefix: 'cus_' },
  customer_lookups: { column: 'customer_id', prefix: 'cus_' },
} as const

export type CustomerTable = keyof typeof CUSTOMER_TABLES
export const CUSTOMER_TABLE_NAMES = Object.keys(CUSTOMER_TABLES) as CustomerTable[]

/** The database hands these out itself, in the order of writing. */
const SEQUENCES = ['seq', 'cursor']

/** The columns that every table's key is within: a sequence, or the environment and ids. */
const KEY = '1, 2, 3'

/** Sorts after whatever an id goes on with. */
const AFTER_ALL = '~'

/** All rows of one customer, as they are stored; events and changes in the order in which they were written. */
export function customerRows(db: Sqlite.Database, table: CustomerTable, key: string): Row[] {
  const { column, prefix } = CUSTOMER_TABLES[table]
  const from = `${prefix}${key}`
  // In two steps: in one, SQLite would rather read the whole table in the order of its key than sort a few rows.
  const own = `select * from ${table} where environment = 'live' and ${column} >= ? and ${column} < ?`
  const rows = db
    .prepare(`with own as materialized (${own}) select * from own order by ${KEY}`)
    .all(from, from + AFTER_ALL) as Row[]
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).filter(([name]) => !SEQUENCES.includes(name))),
  )
}
