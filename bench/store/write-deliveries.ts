import { openWriter } from '../../src/daemon/writer.js'
import type { Policy } from '../../src/entitlements/policy.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { openStore } from '../../src/store/sqlite/store.js'

/** Has the program itself write deliveries into a database, each by itself, at the instant of its receipt. */
export async function writeDeliveries(
  file: string,
  policy: Policy,
  deliveries: readonly Delivery[],
): Promise<void> {
  let now = 0
  const clock = (): number => now
  const store = await openStore(file, policy, (place) => openWriter(place, clock))
  try {
    for (const delivery of deliveries) {
      now = delivery.receivedAt
      await store.writer.writeBatch([delivery])
    }
  } finally {
    await store.close()
  }
}
