import type { Kysely } from 'kysely'
import type { EventFilter } from '../entitlements/stored-event.js'
import { loadDeliveries, type MissingDelivery } from '../store/event-questions.js'
import { newestSeq, walkEvents } from '../store/event-walk.js'
import type { Database } from '../store/schema.js'
import { exportLine } from './line.js'

/** A body has up to a mebibyte, and only so many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** What an export makes of a delivery: a line, or nothing. `reading`: a line that holds no signature to check. */
export type Exported =
  | { readonly kind: 'delivery' | 'reading'; readonly line: string }
  | { readonly kind: MissingDelivery }

/**
 * All stored events that match a filter, oldest first, each followed by the other bodies that came under its id:
 * imported in this order, the same body counts. It ends at the event that was the newest when it began.
 * @param onProgress the `seq` that was reached, and the one to reach
 */
export async function* exportEvents(
  db: Kysely<Database>,
  filter: EventFilter,
  onProgress: (reached: number, newest: number) => void,
): AsyncGenerator<Exported> {
  const newest = await newestSeq(db)
  for await (const { matching, last } of walkEvents(db, filter, { order: 'oldest first', beyond: null })) {
    const seqs = matching.filter((seq) => seq <= newest)
    for (let i = 0; i < seqs.length; i += BODIES_AT_ONCE) {
      for await (const delivery of loadDeliveries(db, seqs.slice(i, i + BODIES_AT_ONCE))) {
        yield typeof delivery === 'string'
          ? { kind: delivery }
          : { kind: delivery.reading ? 'reading' : 'delivery', line: exportLine(delivery) }
      }
    }
    onProgress(Math.min(last, newest), newest)
    if (last >= newest) return
  }
}
