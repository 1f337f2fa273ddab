import type { LoadGenerator, Measurement } from './load/generator.js'
import { median } from './load/percentile.js'
import type { Workload } from './load/requests.js'
import type { RunningServer } from './servers/running-server.js'

/** Who is measured, and with what. */
export interface Contestant {
  readonly name: string
  readonly server: RunningServer
  readonly workload: Workload
  /** Of each round that are counted, if not as many as everybody gets. */
  readonly requests?: number
  /** Has something else go on meanwhile. */
  readonly meanwhile?: <T>(work: () => Promise<T>) => Promise<T>
}

export interface RoundOptions {
  readonly rounds: number
  /** Requests of each round that are not counted, and those that are. */
  readonly warmUp: number
  readonly requests: number
  readonly connections: number
}

export interface Standing {
  readonly name: string
  /** Each figure's own. */
  readonly median: Measurement
  readonly rounds: readonly Measurement[]
}

/** Measures one after the other, round by round, so that what slows the machine for a while slows all of them. */
export async function measureRounds(
  load: LoadGenerator,
  contestants: readonly Contestant[],
  { rounds, ...assignment }: RoundOptions,
): Promise<Standing[]> {
  const measured = new Map<Contestant, Measurement[]>(contestants.map((one) => [one, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const contestant of startingAt(contestants, round)) {
      const { server, workload, requests = assignment.requests, meanwhile = (work) => work() } = contestant
      const result = await meanwhile(() => load.measure(server, { ...assignment, requests, workload }))
      measured.get(contestant)?.push(result)
      console.error(
        `round ${round + 1}: ${contestant.name}: ${Math.round(result.requestsPerSecond)} requests/s`,
      )
    }
  }
  return [...measured].map(([{ name }, results]) => ({ name, median: medianOf(results), rounds: results }))
}

/** For the head of a table. */
export function describeRounds({ rounds, warmUp, requests, connections }: RoundOptions): string {
  return `Medians of ${rounds} rounds of ${requests} requests each, after ${warmUp} to warm up, over ${connections} connections.`
}

/** Another one begins each round, so that nobody always comes after the same one. */
function startingAt<T>(all: readonly T[], round: number): T[] {
  const first = round % all.length
  return [...all.slice(first), ...all.slice(0, first)]
}

function medianOf(results: readonly Measurement[]): Measurement {
  const of = (figure: keyof Measurement): number => median(results.map((result) => result[figure]))
  return {
    requestsPerSecond: of('requestsPerSecond'),
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
    serverMicros: of('serverMicros'),
    databaseMicros: of('databaseMicros'),
    loadMicros: of('loadMicros'),
  }
}
