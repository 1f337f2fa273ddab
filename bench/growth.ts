import { statSync } from 'node:fs'
import { join } from 'node:path'
import { countEvents } from './count-events.js'
import { growthTable } from './growth-table.js'
import { measureLoad } from './load-on-stores.js'
import { ROUND_DEFAULTS, readOptions, roundOptions } from './options.js'
import { machineNow, report } from './results.js'
import { describeRounds } from './rounds.js'
import { measureStarts } from './start-times.js'
import { checkSample } from './store/check-sample.js'
import { type GeneratedStore, generateStore, type StoreSize } from './store/generate.js'
import { verifyWhole } from './store/verify-whole.js'
import { createWorkFolder, onDisk } from './work-folder.js'

/*
 * What becomes slower as customers add up: a start, deliveries, questions and memory on a large store, beside
 * the same on a small one, in the same run. Takes minutes, and about 3 kB of disk for each event.
 * On Linux: it tells what another process costs.
 *
 *   node --import ./scripts/typescript.js bench/growth.ts [--customers 1000000] [--events-per-customer 5] [--sample 100] [--rounds 3]
 *                             [--requests 20000] [--warm-up 3000] [--connections 64] [--folder F]
 *
 * With --folder the large store stays there, and the next run of that size takes it as it is.
 */

const SMALL_CUSTOMERS = 10_000
const MIB = 1024 ** 2

const machine = machineNow()
const { folder, numbers } = readOptions({
  ...ROUND_DEFAULTS,
  customers: 1_000_000,
  'events-per-customer': 5,
  sample: 100,
})
const options = roundOptions(numbers)

async function makeStore(parent: string, size: StoreSize): Promise<GeneratedStore> {
  const startedAt = performance.now()
  const store = await generateStore(
    join(parent, `${size.customers}x${size.eventsPerCustomer}`),
    size,
    (done) => console.error(`${done} of ${size.customers} customers`),
  )
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  await checkSample(store, numbers.sample)
  console.error(
    `${size.customers} customers in ${seconds} s; a sample of ${numbers.sample} stands as the program writes`,
  )
  return store
}

async function measureGrowth(work: string) {
  const eventsPerCustomer = numbers['events-per-customer']
  const small = await makeStore(join(work, 'small'), { customers: SMALL_CUSTOMERS, eventsPerCustomer })
  await verifyWhole(small)
  const kept = folder === undefined ? work : onDisk(folder)
  const large = await makeStore(kept, { customers: numbers.customers, eventsPerCustomer })
  const stores = [small, large]
  return {
    customers: stores.map(({ customers }) => customers),
    events: stores.map(({ databaseFile }) => countEvents(databaseFile)),
    megabytes: stores.map(({ databaseFile }) => statSync(databaseFile).size / MIB),
    starts: await measureStarts(stores, options.rounds),
    ...(await measureLoad(stores, options)),
  }
}

const measured = await measureGrowth(createWorkFolder(folder))
report('growth', machine, [
  {
    title: 'Growth',
    explanation: `${describeRounds(options)} Half the deliveries are of customers that the store knows.`,
    table: growthTable(measured),
    data: measured,
  },
])
