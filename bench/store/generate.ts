import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import type { Policy } from '../../src/entitlements/policy.js'
import { inOrderOfArrival, storedCustomer } from '../sample/customers.js'
import type { Cell } from './customer-rows.js'
import { createDaemonFolder, type DaemonFolder } from './daemon-folder.js'
import { createTemplate, type RowTemplate } from './template.js'
import { writeDeliveries } from './write-deliveries.js'

export interface StoreSize {
  readonly customers: number
  /** On average, at least 2: a buyer has two, and the subscriber beside them all the rest of both. */
  readonly eventsPerCustomer: number
}

export interface GeneratedStore extends DaemonFolder, StoreSize {}

const EVENTS_OF_BUYER = 2
const CUSTOMERS_PER_TRANSACTION = 20_000
const CACHE_KIB = 1024 * 1024

/**
 * Makes a daemon's folder with so many customers in its database, or takes the one that is there. Every row is
 * one that the program wrote of a template's customer, under another's ids.
 */
export async function generateStore(
  folder: string,
  size: StoreSize,
  onProgress: (customers: number) => void = () => {},
): Promise<GeneratedStore> {
  const store = { ...createDaemonFolder(folder), ...size }
  // Written last: a store without it is half made.
  const sizeFile = join(folder, 'size.json')
  const wanted = JSON.stringify(size)
  if (existsSync(sizeFile)) {
    const found = readFileSync(sizeFile, 'utf8')
    if (found !== wanted) throw new Error(`${folder} holds another store: ${found}`)
    return store
  }
  for (const ending of ['', '-wal', '-shm']) rmSync(store.databaseFile + ending, { force: true })
  await writeDeliveries(store.databaseFile, store.policy, [])
  await fillStore(store, onProgress)
  writeFileSync(sizeFile, wanted)
  return store
}

async function fillStore(store: GeneratedStore, onProgress: (customers: number) => void): Promise<void> {
  const templates = await createTemplates(store.eventsPerCustomer, store.policy)
  const db = new Sqlite(store.databaseFile)
  // Nobody else is here, and what is left half made is made anew: only the whole of it must last.
  db.pragma('journal_mode = MEMORY')
  db.pragma('synchronous = OFF')
  db.pragma(`cache_size = -${CACHE_KIB}`)
  const writers = {
    buyer: templates.buyer.map((row) => createRowWriter(db, row)),
    subscriber: templates.subscriber.map((row) => createRowWriter(db, row)),
  }
  let stored = 0
  const writeSome = db.transaction((indexes: Uint32Array) => {
    for (const index of indexes) {
      const { key, kind } = storedCustomer(index, store.customers)
      for (const write of writers[kind]) write(key, stored)
      stored += templates[kind].filter(({ table }) => table === 'events').length
    }
  })
  const arrivals = inOrderOfArrival(store.customers)
  for (let first = 0; first < store.customers; first += CUSTOMERS_PER_TRANSACTION) {
    const end = Math.min(store.customers, first + CUSTOMERS_PER_TRANSACTION)
    writeSome(arrivals.subarray(first, end))
    onProgress(end)
    // An interruption has its turn.
    await turn()
  }
  db.pragma('journal_mode = WAL')
  db.close()
  flushToDisk(store.databaseFile)
}

async function createTemplates(eventsPerCustomer: number, policy: Policy) {
  if (eventsPerCustomer < EVENTS_OF_BUYER) throw new Error(`At least ${EVENTS_OF_BUYER} events a customer.`)
  return {
    buyer: await createTemplate('buyer', EVENTS_OF_BUYER, policy),
    subscriber: await createTemplate('subscriber', 2 * eventsPerCustomer - EVENTS_OF_BUYER, policy),
  }
}

function createRowWriter(
  db: Sqlite.Database,
  { table, columns, fill }: RowTemplate,
): (key: string, offset: number) => void {
  const places = columns.map(() => '?').join(', ')
  const names = columns.map((column) => `"${column}"`).join(', ')
  const insert = db.prepare<Cell[]>(`insert into ${table} (${names}) values (${places})`)
  return (key, offset) => void insert.run(...fill(key, offset))
}

/** So that the system does not do it while something is measured. */
function flushToDisk(file: string): void {
  const descriptor = openSync(file, 'r+')
  fsyncSync(descriptor)
  closeSync(descriptor)
}
