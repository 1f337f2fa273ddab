import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import Sqlite from 'better-sqlite3'
import type { Delivery } from '../../src/ingest/delivery.js'
import { compareStored } from '../../src/recompute/compare.js'
import type { SignedHeaders } from '../../src/store/events.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { anyStoredCustomer } from '../sample/customers.js'
import { CUSTOMER_TABLE_NAMES, customerRows, type Row } from './customer-rows.js'
import { withoutNumbers } from './fill-row.js'
import type { GeneratedStore } from './generate.js'
import { writeDeliveries } from './write-deliveries.js'

/**
 * Proves by some random customers that a generated store is what the program would have made of its deliveries:
 * the program writes these into an empty store, where every row of theirs must come out the same, and where what
 * stands must be what folding all events from nothing gives. Throws otherwise.
 */
export async function checkSample(store: GeneratedStore, customers: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-sample-'))
  const generated = new Sqlite(store.databaseFile, { readonly: true })
  try {
    const file = join(folder, 'sample.db')
    const keys = Array.from({ length: customers }, () => anyStoredCustomer(store.customers).key)
    const sample = [...new Set(keys)]
    const events = sample.flatMap((key) => customerRows(generated, 'events', key))
    await writeDeliveries(file, store.policy, events.map(toDelivery))
    assertSameRows(generated, file, sample)
    await assertFolded(store, file)
  } finally {
    generated.close()
    rmSync(folder, { recursive: true })
  }
}

function toDelivery({ endpoint, body, headers, received_at: receivedAt }: Row): Delivery {
  return {
    endpoint: String(endpoint),
    environment: 'live',
    body: body as Buffer,
    headers: JSON.parse(String(headers)) as SignedHeaders,
    receivedAt: Number(receivedAt),
  }
}

function assertSameRows(generated: Sqlite.Database, file: string, keys: readonly string[]): void {
  const written = new Sqlite(file, { readonly: true })
  try {
    for (const table of CUSTOMER_TABLE_NAMES) {
      const rows = keys.map((key) => customerRows(written, table, key))
      if (rows.flat().length === 0) throw new Error(`No customer of the sample has any ${table}.`)
      const isSame = (key: string, i: number) =>
        isDeepStrictEqual(
          customerRows(generated, table, key).map(withoutNumbers),
          rows[i]?.map(withoutNumbers),
        )
      const differs = keys.find((key, i) => !isSame(key, i))
      if (differs !== undefined)
        throw new Error(`The program would have written other ${table} of ${differs}.`)
    }
  } finally {
    written.close()
  }
}

async function assertFolded({ policy }: GeneratedStore, file: string): Promise<void> {
  const db = openDatabase(file, { readOnly: true })
  try {
    const plan = { scope: ['live', 'sandbox'], endpoints: null, policy, mode: 'verify' } as const
    const { differences } = await compareStored(db, plan, { clock: Date.now })
    for (const { kind, id } of differences.named)
      throw new Error(`The ${kind} ${id} is not stored as its events say.`)
  } finally {
    await db.destroy()
  }
}
