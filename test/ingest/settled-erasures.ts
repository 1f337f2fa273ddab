import { openWriter } from '../../src/daemon/writer.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { RecordedErasure } from '../../src/store/erasure-file.js'
import { openStore } from '../../src/store/store.js'

export const NOW = Date.UTC(2026, 2, 1, 12)

/** The erasure of somebody of whom nothing is stored. */
export function recordedErasure(n: number): RecordedErasure {
  return {
    environment: 'live',
    customerId: `cus_${n}`,
    eventId: `man_${n}`,
    at: NOW,
    actor: 'somebody',
    reason: null,
    fingerprints: [],
  }
}

/** As at a start: the database, made where there is none, and the list beside it tell the same then. */
export async function settleStore(file: string): Promise<void> {
  const clock = () => NOW
  const store = await openStore(file, DOCUMENTED_POLICY, clock, (place) => openWriter(place, clock))
  await store.writer.settleErasures()
  await store.close()
}
