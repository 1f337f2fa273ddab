import { vi } from 'vitest'

/** Far longer than anything awaited takes, even on a machine that is busy with other tests. */
const PATIENCE = { timeout: 20_000 }

/** Awaits what comes about by itself: asks again until the check no longer throws. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, PATIENCE)
}
