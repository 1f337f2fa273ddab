import { assertStored, countEvents } from '../count-events.js'
import { startLoadGenerator } from '../load/generator.js'
import type { Workload } from '../load/requests.js'
import { measureRounds, type RoundOptions, type Standing } from '../rounds.js'
import { startLatchkey } from '../servers/latchkey.js'
import type { GeneratedStore } from '../store/generate.js'
import { together } from '../together.js'
import { whileRebuilding } from './rebuilding.js'

export const ALONE = 'no rebuild'
const REBUILDING = 'during a rebuild'

export interface DeliveriesMeanwhile {
  readonly standings: readonly Standing[]
  /** How long each rebuild took that ended while deliveries came in. */
  readonly rebuildSeconds: readonly number[]
}

/** Measures how fast deliveries are acknowledged while the daemon rebuilds, and while it does not, in turn. */
export async function measureMeanwhile(
  store: GeneratedStore,
  options: RoundOptions,
): Promise<DeliveriesMeanwhile> {
  const sent = 2 * options.rounds * (options.warmUp + options.requests)
  const expected = countEvents(store.databaseFile) + sent
  const rebuildSeconds: number[] = []
  const standings = await together(async (use) => {
    const load = use(startLoadGenerator())
    const server = use(await startLatchkey(store.configFile))
    const workload: Workload = { kind: 'deliveries', returning: store.customers }
    return measureRounds(
      load,
      [
        { name: ALONE, server, workload },
        {
          name: REBUILDING,
          server,
          workload,
          meanwhile: (work) => whileRebuilding(server, (seconds) => rebuildSeconds.push(seconds), work),
        },
      ],
      options,
    )
  })
  assertStored(store.databaseFile, expected)
  return { standings, rebuildSeconds }
}
