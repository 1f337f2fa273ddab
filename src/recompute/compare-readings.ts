import type { Kysely } from 'kysely'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/environments.js'
import { columnsOf, READ_COLUMNS } from '../store/event-reading.js'
import { loadSeqsBeyond, newestSeq } from '../store/event-walk.js'
import type { Database } from '../store/schema.js'
import { type ReadAgain, readAgain } from './read-again.js'

/** Bounds the memory: bodies are read a few at a time, and what they were read as is kept for so many. */
const EVENTS_AT_ONCE = 500

/** Where the event stands, and which program has read it. */
const NOT_COMPARED: readonly string[] = ['source_kind', 'source_id', 'normalizer_version']
const COMPARED = READ_COLUMNS.filter((column) => !NOT_COMPARED.includes(column))

export interface ComparedReadings {
  /** How many bodies were read again. */
  readonly read: number
  /** How many of them say something else than what is stored of them. */
  readonly otherwise: number
  /** One of the earliest to arrive; null: none does. */
  readonly first: { readonly environment: Environment; readonly eventId: string } | null
}

/**
 * Reads every body that is there as it came, and compares what the program of today understands with what is stored.
 * Where a source has put its event, and what became of it there, is not the reading's: verifying tells that.
 * @param endpoints the environment of each endpoint that is configured
 */
export async function compareReadings(
  db: Kysely<Database>,
  endpoints: Readonly<Record<string, Environment>>,
): Promise<ComparedReadings> {
  let compared: ComparedReadings = { read: 0, otherwise: 0, first: null }
  const end = await newestSeq(db)
  let reached = 0
  while (reached < end) {
    const rows = await loadSeqsBeyond(db, reached, end, EVENTS_AT_ONCE)
    for (const environment of ENVIRONMENTS) {
      const seqs = rows.filter((row) => row.environment === environment).map(({ seq }) => seq)
      const found = await readAgain(db, environment, seqs, endpoints)
      const read = [...found.values()].filter((one) => one.kind === 'read')
      const changed = read.filter(saysSomethingElse)
      const [first] = changed
      compared = {
        read: compared.read + read.length,
        otherwise: compared.otherwise + changed.length,
        first: compared.first ?? (first === undefined ? null : { environment, eventId: first.row.event_id }),
      }
    }
    reached = rows.at(-1)?.seq ?? end
  }
  return compared
}

function saysSomethingElse({ row, eventId, normalized }: ReadAgain): boolean {
  const said = columnsOf({
    eventId,
    disposition: normalized.ok ? row.disposition : 'quarantined',
    reason: normalized.ok ? row.reason : normalized.reason,
    event: normalized.ok ? normalized.event : null,
    source: null,
  })
  return COMPARED.some((column) => row[column] !== said[column])
}
