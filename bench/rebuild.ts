import { join } from 'node:path'
import { countEvents } from './count-events.js'
import { median } from './load/percentile.js'
import { ROUND_DEFAULTS, readOptions, roundOptions } from './options.js'
import { ALONE, type Measured, measureMeanwhile } from './rebuild/deliveries-meanwhile.js'
import { type Effort, effortOf } from './rebuild/effort.js'
import { measureReading } from './rebuild/read-loop.js'
import { rebuildOnce } from './rebuild/rebuilding.js'
import { effortTable } from './rebuild/table.js'
import { measureVerifying } from './rebuild/verify-run.js'
import { machineNow, report, type Section } from './results.js'
import { describeRounds, type RoundOptions } from './rounds.js'
import { startLatchkey } from './servers/latchkey.js'
import { checkSample } from './store/check-sample.js'
import { type GeneratedStore, generateStore } from './store/generate.js'
import { figure, standingsTable } from './table.js'
import { together } from './together.js'
import { createWorkFolder, onDisk } from './work-folder.js'

/*
 * How long a rebuild of a large store takes, and `rebuild --verify`, beside a loop that only reads the same events
 * and parses them; and how fast deliveries are acknowledged during a rebuild, and during a verification. About 3 kB of disk for each event.
 * On Linux: it tells what another process costs.
 *
 *   node --import ./scripts/typescript.js bench/rebuild.ts [--customers 100000] [--events-per-customer 10] [--sample 100] [--rounds 3]
 *                              [--requests 20000] [--warm-up 3000] [--connections 64] [--folder F]
 *                              [--against F: where another version of Latchkey is built]
 *
 * With --folder the store stays there, and the next run of that size takes it as it is.
 */

const machine = machineNow()
const { folder, against, numbers } = readOptions({
  ...ROUND_DEFAULTS,
  customers: 100_000,
  'events-per-customer': 10,
  sample: 100,
})
const options = roundOptions(numbers)

type Efforts = Readonly<Record<string, Effort>>

/** By a daemon that was just started, and then once more by the same. */
function measureRebuilds({ configFile }: GeneratedStore): Promise<Efforts> {
  return together(async (use) => {
    const server = use(await startLatchkey(configFile))
    return {
      'rebuild after a start': await effortOf(server.pid, () => rebuildOnce(server)),
      'rebuild once more': await effortOf(server.pid, () => rebuildOnce(server)),
    }
  })
}

async function measureWork(store: GeneratedStore, { rounds }: RoundOptions): Promise<Section> {
  const events = countEvents(store.databaseFile)
  const works = [
    async () => ({ 'only reading and parsing': await measureReading(store.databaseFile) }),
    () => measureRebuilds(store),
    async () => ({ 'rebuild --verify': await measureVerifying(store.configFile) }),
  ] satisfies (() => Promise<Efforts>)[]
  const measured = new Map<string, Effort[]>()
  for (let round = 0; round < rounds; round += 1) {
    for (const measure of works) {
      for (const [name, effort] of Object.entries<Effort>(await measure())) {
        measured.set(name, [...(measured.get(name) ?? []), effort])
        console.error(`round ${round + 1}: ${name}: ${figure(effort.seconds)} s`)
      }
    }
  }
  const medians = [...measured].map(([name, efforts]) => [name, medianOf(efforts)] as const)
  return {
    title: 'Rebuild',
    explanation: `Medians of ${rounds} rounds over ${events} events of ${store.customers} customers. A process of its own each: the daemon's while nothing else is asked of it, and the command's from its start to its end.`,
    table: effortTable(events, medians),
    data: Object.fromEntries(measured),
  }
}

function medianOf(efforts: readonly Effort[]): Effort {
  const of = (figure: keyof Effort): number => median(efforts.map((effort) => effort[figure]))
  return { seconds: of('seconds'), cpuSeconds: of('cpuSeconds'), diskMb: of('diskMb'), peakMb: of('peakMb') }
}

async function measureDeliveries(measured: readonly Measured[]): Promise<Section> {
  const { standings, seconds } = await measureMeanwhile(measured, options)
  const took = Object.entries(seconds).map(
    ([name, each]) => `${name}: ${each.map((one) => `${figure(one)} s`).join(', ')}`,
  )
  return {
    title: 'Deliveries meanwhile',
    explanation: `${describeRounds(options)} Half the deliveries are of customers that the store knows. What ended among them took: ${took.join('; ') || 'longer than these'}.`,
    table: standingsTable(standings, [ALONE, ...(against === undefined ? [] : [`${ALONE}, before`])]),
    data: { standings, seconds },
  }
}

const work = createWorkFolder(folder)
const size = { customers: numbers.customers, eventsPerCustomer: numbers['events-per-customer'] }
const kept = folder === undefined ? work : onDisk(folder)
const generate = (name: string) =>
  generateStore(join(kept, `${name}${size.customers}x${size.eventsPerCustomer}`), size, (done) =>
    console.error(`${done} of ${size.customers} customers`),
  )
const store = await generate('')
await checkSample(store, numbers.sample)
const measured: Measured[] = [{ store }]
if (against !== undefined) measured.push({ store: await generate('before-'), project: against })
report('rebuild', machine, [await measureWork(store, options), await measureDeliveries(measured)])
