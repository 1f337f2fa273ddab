/* Makes a story that fails shorter: as few steps as still break the same promise. */

import { play } from './run.js'
import type { Step } from './story.js'
import type { Ground } from './world.js'

/** @param heard hears how many steps are left, now and then */
export async function shrink(
  seed: number,
  story: readonly Step[],
  promise: string,
  groundOf: (seed: number) => Promise<Ground>,
  heard: (steps: number, runs: number) => void,
): Promise<readonly Step[]> {
  let left = story
  let runs = 0
  const fails = async (some: readonly Step[]): Promise<boolean> => {
    runs += 1
    const { failure } = await play(seed, some, groundOf)
    return failure?.promise === promise
  }
  for (let size = Math.ceil(left.length / 2); size >= 1; ) {
    let isShorter = false
    // From the end: what comes after the failure goes at once.
    for (let end = left.length; end > 0; end -= size) {
      const without = left.filter((_, at) => at < end - size || at >= end)
      if (without.length === left.length || !(await fails(without))) continue
      left = without
      isShorter = true
      heard(left.length, runs)
    }
    if (size === 1 && !isShorter) break
    size = size === 1 ? 1 : Math.ceil(size / 2)
  }
  return left
}
