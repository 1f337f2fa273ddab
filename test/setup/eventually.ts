import { expect, vi } from 'vitest'

/** Far longer than anything awaited takes, even on a machine that is busy with other tests. */
export const PATIENCE_MS = 100_000

/** How often it is looked again. */
export interface Looking {
  readonly intervalMs?: number
}

/** The tests that await something at this moment, one entry for each thing. */
const awaiting: string[] = []

/** Awaits what comes about by itself: asks again until the check no longer throws. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { intervalMs = 20 }: Looking = {},
): Promise<T> {
  const test = expect.getState().currentTestName ?? 'outside a test'
  awaiting.push(test)
  try {
    return await vi.waitFor(check, { timeout: PATIENCE_MS, interval: intervalMs })
  } finally {
    awaiting.splice(awaiting.indexOf(test), 1)
  }
}

/** The tests that left while something of theirs is still asked for: that would turn the clocks which later tests fake. */
export const leftAwaiting = (): readonly string[] => awaiting
