import type { Kysely } from 'kysely'
import type { Database, SourcesTable } from './schema.js'
import { readHistory, type StateRow, stateOf } from './sources.js'
import { eventInFormIfReadable } from './stored-form.js'

/** A form has up to some kilobytes, and only so many are in memory at a time. */
const ROWS_AT_ONCE = 500

const NAMED_AT_MOST = 3

/** How many forms were read, and how many of them can't be: as this program writes them, only damage makes one so. */
export interface ReadForms {
  readonly read: number
  readonly unreadable: number
  /** What the first few of those belong to: `evt_1 in live`. */
  readonly first: readonly string[]
}

/** Reads what was understood of each event, a part in each question, so that a daemon beside it is not held up. */
export function readEventForms(db: Kysely<Database>): Promise<ReadForms> {
  return readForms(async (beyond) => {
    const rows = await db
      .selectFrom('events')
      .select(['seq', 'environment', 'event_id', 'normalized'])
      .where('seq', '>', beyond)
      .where('normalized', 'is not', null)
      .orderBy('seq')
      .limit(ROWS_AT_ONCE)
      .execute()
    return rows.map(({ seq, environment, event_id: id, normalized }) => ({
      seq,
      name: `${id} in ${environment}`,
      isReadable: normalized !== null && eventInFormIfReadable(normalized) !== null,
    }))
  })
}

/** The same of each source: its state, and its history. */
export function readSourceForms(db: Kysely<Database>): Promise<ReadForms> {
  return readForms(async (beyond) => {
    const rows = await db
      .selectFrom('sources')
      .select(['seq', 'environment', 'kind', 'source_id', 'customer_id', 'newest_at', 'state', 'history'])
      .where('seq', '>', beyond)
      .orderBy('seq')
      .limit(ROWS_AT_ONCE)
      .execute()
    return rows.map((row) => ({
      seq: row.seq,
      name: `${row.kind} ${row.source_id} in ${row.environment}`,
      isReadable: isReadableSource(row),
    }))
  })
}

interface Form {
  readonly seq: number
  readonly name: string
  readonly isReadable: boolean
}

async function readForms(loadBeyond: (seq: number) => Promise<readonly Form[]>): Promise<ReadForms> {
  let found: ReadForms = { read: 0, unreadable: 0, first: [] }
  // Before whatever number a row may have.
  let reached = Number.MIN_SAFE_INTEGER
  for (;;) {
    const forms = await loadBeyond(reached)
    const broken = forms.filter((form) => !form.isReadable).map(({ name }) => name)
    found = {
      read: found.read + forms.length,
      unreadable: found.unreadable + broken.length,
      first: [...found.first, ...broken].slice(0, NAMED_AT_MOST),
    }
    const last = forms.at(-1)
    if (last === undefined) return found
    reached = last.seq
  }
}

function isReadableSource(row: StateRow & Pick<SourcesTable, 'history'>): boolean {
  try {
    stateOf(row)
    readHistory(row)
    return true
  } catch {
    return false
  }
}
