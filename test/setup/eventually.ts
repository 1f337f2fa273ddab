import { vi } from 'vitest'

/** Far longer than anything awaited takes, even on a machine that is busy with other tests. */
export const PATIENCE_MS = 100_000

/** How often it is looked again. */
export interface Looking {
  readonly intervalMs?: number
}

/** Awaits what comes about by itself: asks again until the check no longer throws. */
export function eventually<T>(check: () => T | Promise<T>, { intervalMs = 20 }: Looking = {}): Promise<T> {
  return vi.waitFor(check, { timeout: PATIENCE_MS, interval: intervalMs })
}
