import { median } from './load/percentile.js'
import { startLatchkey } from './servers/latchkey.js'
import type { GeneratedStore } from './store/generate.js'

/** From the start of the process to the first 200 of `/readyz`, in milliseconds. */
export interface StartTimes {
  readonly median: number
  readonly rounds: readonly number[]
}

/** Starts and stops a daemon on each store in turn, some rounds. */
export async function measureStarts(
  stores: readonly GeneratedStore[],
  rounds: number,
): Promise<readonly StartTimes[]> {
  const times: number[][] = stores.map(() => [])
  for (let round = 0; round < rounds; round += 1) {
    for (const [i, { configFile }] of stores.entries()) {
      const daemon = await startLatchkey(configFile)
      await daemon.stop()
      times[i]?.push(daemon.readyAfterMs)
    }
  }
  return times.map((own) => ({ median: median(own), rounds: own }))
}
