import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { Policy } from '../../src/entitlements/policy.js'
import type { CustomerKind } from '../sample/customers.js'
import { historyOf } from '../sample/cycles.js'
import { deliveryOf } from '../sample/signing.js'
import { CUSTOMER_TABLE_NAMES, type CustomerTable, customerRows, type Row } from './customer-rows.js'
import { type FillRow, fillEvent, fillRow, fillSource, TEMPLATE_KEY } from './fill-row.js'
import { writeDeliveries } from './write-deliveries.js'

/** One row that the program wrote of one customer, ready to be written of others. */
export interface RowTemplate {
  readonly table: CustomerTable
  readonly columns: readonly string[]
  readonly fill: FillRow
}

/** Long ago, so that whatever a customer does next comes later. */
const FIRST_PAID_AT = Date.UTC(2020, 0, 1, 12)

/** A delivery comes in this long after what it tells of. */
const UNDER_WAY_MS = 1_500

/** Has the program write the history of one customer into a database of its own, and takes its rows from there. */
export async function createTemplate(
  kind: CustomerKind,
  events: number,
  policy: Policy,
): Promise<RowTemplate[]> {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-template-'))
  try {
    const file = join(folder, 'template.db')
    const history = historyOf({ key: TEMPLATE_KEY, kind }, FIRST_PAID_AT, events)
    const deliveries = history.map((event) => deliveryOf(event, event.createdAt + UNDER_WAY_MS))
    await writeDeliveries(file, policy, deliveries)
    return readTemplate(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function filled(table: CustomerTable, row: Row): FillRow {
  if (table === 'events') return fillEvent(row)
  return table === 'sources' ? fillSource(row) : fillRow(row)
}

function readTemplate(file: string): RowTemplate[] {
  const db = new Sqlite(file, { readonly: true })
  try {
    return CUSTOMER_TABLE_NAMES.flatMap((table) =>
      customerRows(db, table, TEMPLATE_KEY).map((row) => ({
        table,
        columns: Object.keys(row),
        fill: filled(table, row),
      })),
    )
  } finally {
    db.close()
  }
}
