import { assertStored, countEvents } from '../count-events.js'
import { startLoadGenerator } from '../load/generator.js'
import type { Workload } from '../load/requests.js'
import { type Contestant, measureRounds, type RoundOptions, type Standing } from '../rounds.js'
import { startLatchkey } from '../servers/latchkey.js'
import type { GeneratedStore } from '../store/generate.js'
import { together } from '../together.js'
import { type Recompute, whileRebuilding } from './rebuilding.js'

export const ALONE = 'alone'

/** What goes on at the daemon meanwhile. */
const MEANWHILE: readonly (readonly [name: string, path: Recompute])[] = [
  ['during a rebuild', '/rebuild'],
  ['during a verification', '/rebuild/verification'],
]

/** A daemon, and the store that it alone serves. */
export interface Measured {
  readonly store: GeneratedStore
  /** The folder where it is built, if that is another version; all its rows then end in `before`. */
  readonly project?: string | undefined
}

export interface DeliveriesMeanwhile {
  readonly standings: readonly Standing[]
  /** How long each took that ended while deliveries came in, by what it was. */
  readonly seconds: Readonly<Record<string, readonly number[]>>
}

/** Measures how fast deliveries are acknowledged while the daemon rebuilds or verifies, and while it does not, in turn. */
export async function measureMeanwhile(
  measured: readonly Measured[],
  options: RoundOptions,
): Promise<DeliveriesMeanwhile> {
  const sent = (1 + MEANWHILE.length) * options.rounds * (options.warmUp + options.requests)
  const expected = measured.map(({ store }) => countEvents(store.databaseFile) + sent)
  const taken = new Map<string, number[]>()
  const standings = await together(async (use) => {
    const load = use(startLoadGenerator())
    const contestants: Contestant[] = []
    for (const { store, project } of measured) {
      const server = use(await startLatchkey(store.configFile, project))
      const workload: Workload = { kind: 'deliveries', returning: store.customers }
      const nameOf = (what: string) => (project === undefined ? what : `${what}, before`)
      contestants.push({ name: nameOf(ALONE), server, workload })
      for (const [what, path] of MEANWHILE) {
        const name = nameOf(what)
        const seconds: number[] = []
        taken.set(name, seconds)
        contestants.push({
          name,
          server,
          workload,
          meanwhile: (work) => whileRebuilding(server, path, (one) => seconds.push(one), work),
        })
      }
    }
    return measureRounds(load, contestants, options)
  })
  for (const [i, { store }] of measured.entries()) assertStored(store.databaseFile, expected[i] ?? 0)
  const seconds = Object.fromEntries([...taken].filter(([, each]) => each.length > 0))
  return { standings, seconds }
}
