import { assertStored, countEvents } from './count-events.js'
import { type LoadGenerator, startLoadGenerator } from './load/generator.js'
import type { Workload } from './load/requests.js'
import { type MemoryUse, memoryUse } from './process-usage.js'
import { askForAccess } from './reads.js'
import { measureRounds, type RoundOptions, type Standing } from './rounds.js'
import { startLatchkey } from './servers/latchkey.js'
import type { RunningServer } from './servers/running-server.js'
import { API_KEY } from './store/daemon-folder.js'
import type { GeneratedStore } from './store/generate.js'
import { together } from './together.js'

/** What the daemons did, each on its store, in the order of the stores. */
export interface LoadOnStores {
  readonly questions: readonly Standing[]
  /** Bulk checks of 1,000 pairs, one after the other. */
  readonly checks: readonly Standing[]
  readonly deliveries: readonly Standing[]
  /** After all of them. */
  readonly memory: readonly MemoryUse[]
}

/** Each has some 70 kB, and all are built before the first is sent. */
const CHECKS = { warmUp: 50, requests: 200, connections: 1 }

interface ServedStore {
  readonly store: GeneratedStore
  readonly server: RunningServer
}

/** Puts the same load on a daemon of each store. Half the deliveries are of customers that the store knows. */
export async function measureLoad(
  stores: readonly GeneratedStore[],
  options: RoundOptions,
): Promise<LoadOnStores> {
  const sent = options.rounds * (options.warmUp + options.requests)
  const expected = stores.map(({ databaseFile }) => countEvents(databaseFile) + sent)
  const measured = await together(async (use) => {
    const load = use(startLoadGenerator())
    const served: ServedStore[] = []
    for (const store of stores) served.push({ store, server: use(await startLatchkey(store.configFile)) })
    for (const { store, server } of served) await askForAccess(server, store.customers)
    return {
      questions: await measure(load, served, question, options),
      checks: await measure(load, served, check, { ...options, ...CHECKS }),
      deliveries: await measure(load, served, delivery, options),
      memory: served.map(({ server }) => memoryUse(server.pid)),
    }
  })
  for (const [i, { databaseFile }] of stores.entries()) assertStored(databaseFile, expected[i] ?? 0)
  return measured
}

function measure(
  load: LoadGenerator,
  served: readonly ServedStore[],
  workloadOn: (store: GeneratedStore) => Workload,
  options: RoundOptions,
): Promise<Standing[]> {
  const contestants = served.map(({ store, server }) => ({
    name: `${store.customers} customers`,
    server,
    workload: workloadOn(store),
  }))
  return measureRounds(load, contestants, options)
}

function question({ customers }: GeneratedStore): Workload {
  return { kind: 'questions', customers, apiKey: API_KEY }
}

function check({ customers }: GeneratedStore): Workload {
  return { kind: 'checks', pairs: 1_000, customers, apiKey: API_KEY }
}

function delivery({ customers }: GeneratedStore): Workload {
  return { kind: 'deliveries', returning: customers }
}
