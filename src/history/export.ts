import { loadDeliveries, type MissingDelivery } from '../store/event-questions.js'
import { type EventFilter, newestSeq, walkEvents } from '../store/event-walk.js'
import type { Db } from '../store/schema.js'
import { exportLine } from './line.js'

/** A body has up to one mebibyte, and only this many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** A page ends after this many characters, or after this many events were read for it. */
const MAX_CHARACTERS = 2_000_000
const MAX_LOOKED_AT = 20_000

/** The position of an export, by `seq`. */
export interface ExportPlace {
  readonly reached: number
  /** The newest event at the start of the export, which ends with it. */
  readonly newest: number
}

export interface ExportPage extends ExportPlace {
  readonly lines: readonly string[]
  /** By result: nothing is left out silently. `reading`: without a signature. */
  readonly counts: Readonly<Record<'delivery' | 'reading' | MissingDelivery, number>>
}

/**
 * The next stored events that match a filter, oldest first, each followed by other bodies that came under its id: so
 * an import in this order keeps the same body. The last page has reached the newest.
 */
export async function readExportPage(db: Db, filter: EventFilter, place: ExportPlace | null) {
  const newest = place?.newest ?? (await newestSeq(db))
  const lines: string[] = []
  const counts = { delivery: 0, reading: 0, removed: 0, altered: 0 }
  let characters = 0
  let lookedAt = 0
  const at = (reached: number): ExportPage => ({ lines, counts, reached, newest })

  const beyond = place?.reached ?? null
  for await (const step of walkEvents(db, filter, 'oldest first', beyond)) {
    const seqs = step.matching.filter((seq) => seq <= newest)
    for (let i = 0; i < seqs.length; i += BODIES_AT_ONCE) {
      const some = seqs.slice(i, i + BODIES_AT_ONCE)
      for await (const delivery of loadDeliveries(db, some)) {
        counts[typeof delivery === 'string' ? delivery : delivery.reading ? 'reading' : 'delivery'] += 1
        if (typeof delivery === 'string') continue
        const line = exportLine(delivery)
        characters += line.length
        lines.push(line)
      }
      if (characters >= MAX_CHARACTERS) return at(some.at(-1) ?? newest)
    }
    lookedAt += step.lookedAt
    if (step.last >= newest) break
    if (lookedAt >= MAX_LOOKED_AT) return at(step.last)
  }
  return at(newest)
}
