import Sqlite from 'better-sqlite3'
import { openWriter } from '../src/daemon/writer.js'
import { openStore } from '../src/store/sqlite/store.js'
import { readOptions } from './options.js'
import { anyStoredSubscriber, storedCustomer } from './sample/customers.js'
import { cycleEvents, type DatedEvent, MONTH_MS } from './sample/cycles.js'
import { deliveryOf } from './sample/signing.js'
import { createDaemonFolder } from './store/daemon-folder.js'
import { createWorkFolder } from './work-folder.js'

/*
 * What a delivery costs the writer: its CPU time, and how many pages each transaction puts into the write-ahead log.
 * Renewals of random subscriptions, alone and with the payments that they are paid by.
 *
 *   node --import ./scripts/typescript.js bench/writer.ts [--subscriptions 20000] [--deliveries 12800] [--batch 64] [--folder F]
 */

const { folder, numbers } = readOptions({ subscriptions: 20_000, deliveries: 12_800, batch: 64 })
const { subscriptions, deliveries, batch } = numbers
/** Every second customer of a store subscribes. */
const customers = 2 * subscriptions
const now = Date.now()

const { databaseFile, policy } = createDaemonFolder(createWorkFolder(folder))
const clock = (): number => now
const store = await openStore(databaseFile, policy, (file) => openWriter(file, clock))
const log = new Sqlite(databaseFile)

async function write(events: readonly DatedEvent[], size: number): Promise<number> {
  let pages = 0
  for (let first = 0; first < events.length; first += size) {
    await store.writer.writeBatch(events.slice(first, first + size).map((event) => deliveryOf(event, now)))
    pages += pagesInLog()
  }
  return pages
}

/** The next transaction begins the log anew, once all of it is in the database. */
function pagesInLog(): number {
  const [row] = log.pragma('wal_checkpoint(passive)') as { log: number }[]
  return row?.log ?? 0
}

function firstCycles(): DatedEvent[] {
  return Array.from({ length: subscriptions }, (_, i) =>
    cycleEvents(storedCustomer(2 * i + 1, customers), { name: '0', isFirst: true, paidAt: now - MONTH_MS }),
  ).flat()
}

function renewal(name: string): DatedEvent[] {
  return cycleEvents(anyStoredSubscriber(customers), { name, isFirst: false, paidAt: now })
}

async function measure(name: string, events: readonly DatedEvent[]): Promise<void> {
  const before = process.cpuUsage()
  const pages = await write(events, batch)
  const { user, system } = process.cpuUsage(before)
  const micros = (user + system) / events.length
  console.log(`${name}: ${micros.toFixed(0)} us, ${(pages / events.length).toFixed(2)} pages a delivery`)
}

await write(firstCycles(), 256)
for (const round of ['a', 'b']) {
  const alone = Array.from({ length: deliveries }, (_, i) => renewal(`${round}${i}`).slice(-1)).flat()
  await measure('renewals', alone)
  const paid = Array.from({ length: deliveries / 3 }, (_, i) => renewal(`paid-${round}${i}`)).flat()
  await measure('renewals with their payments', paid)
}
log.close()
await store.close()
