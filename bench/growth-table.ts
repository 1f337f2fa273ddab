import type { Measurement } from './load/generator.js'
import type { LoadOnStores } from './load-on-stores.js'
import type { Standing } from './rounds.js'
import type { StartTimes } from './start-times.js'
import { figure, markdownTable, ratio, type TableRow } from './table.js'

export interface Growth extends LoadOnStores {
  /** Of the small store, then of the large one; all else in the same order. */
  readonly customers: readonly number[]
  /** Before anything was measured. */
  readonly events: readonly number[]
  readonly megabytes: readonly number[]
  readonly starts: readonly StartTimes[]
}

const FIGURES: readonly (readonly [string, keyof Measurement])[] = [
  ['/s', 'requestsPerSecond'],
  [', p50 ms', 'p50Ms'],
  [', p99 ms', 'p99Ms'],
  [', server µs', 'serverMicros'],
]

/** A row for each figure: on the small store, on the large one, and how many times as much. */
export function growthTable(growth: Growth): string {
  const row = (name: string, [small = Number.NaN, large = Number.NaN]: readonly number[]): TableRow => ({
    figure: name,
    [`${growth.customers[0]} customers`]: figure(small),
    [`${growth.customers[1]} customers`]: figure(large),
    ratio: ratio(large, small),
  })
  const rows = (name: string, standings: readonly Standing[]): TableRow[] =>
    FIGURES.map(([what, key]) => {
      const values = standings.map(({ median }) => median[key])
      return row(`${name}${what}`, values)
    })
  const startsMs = growth.starts.map(({ median }) => median)
  const residentMb = growth.memory.map((use) => use.residentMb)
  const peakMb = growth.memory.map((use) => use.peakMb)
  return markdownTable([
    row('events', growth.events),
    row('database MB', growth.megabytes),
    row('start to ready, ms', startsMs),
    ...rows('deliveries', growth.deliveries),
    ...rows('questions', growth.questions),
    ...rows('bulk checks of 1,000 pairs', growth.checks),
    row('resident MB after that', residentMb),
    row('resident MB at most', peakMb),
  ])
}
