import { expect } from 'vitest'
import type { Database } from '../../src/store/schema.js'
import type { RunningDaemon } from './running-daemon.js'

/** Every table that a delivery can leave something in. */
const TABLES = [
  'events',
  'event_conflicts',
  'payment_links',
  'sources',
  'entitlements',
  'changes',
  'customers',
  'customer_references',
  'customer_lookups',
] as const satisfies readonly (keyof Database)[]

/** The stored events in the order of their arrival; of one customer only, if one is named. */
export function storedEvents(daemon: RunningDaemon, { customer }: { readonly customer?: string } = {}) {
  return daemon.stored((db) => {
    const events = db.selectFrom('events').selectAll().orderBy('seq')
    return (customer === undefined ? events : events.where('customer_id', '=', customer)).execute()
  })
}

/** What is stored under one id: at most one event, in a list. */
export function storedUnder(daemon: RunningDaemon, eventId: string) {
  return daemon.stored((db) => db.selectFrom('events').selectAll().where('event_id', '=', eventId).execute())
}

export async function expectNothingStored(daemon: RunningDaemon): Promise<void> {
  const found = await daemon.stored(async (db) => {
    const rows = await Promise.all(TABLES.map((table) => db.selectFrom(table).selectAll().execute()))
    return rows.flat()
  })
  expect(found).toEqual([])
}
