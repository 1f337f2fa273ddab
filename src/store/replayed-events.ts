import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import { columnsOf, type EventReading, READ_COLUMNS, type ReadColumns } from './event-reading.js'
import type { Database } from './schema.js'
import { isAltered } from './stored-form.js'

/** A body has up to a mebibyte, and only so many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** A stored event, without its bytes. */
export interface ReplayedEvent extends ReadColumns {
  readonly seq: number
  readonly endpoint: string
  readonly body_sha256: string
  /** The text `null` for what was done by hand. */
  readonly headers: string
}

export interface ReplayedBody {
  readonly row: ReplayedEvent
  /** Null: it is not there as it came, so that it can't be read again. */
  readonly body: Buffer | null
  /** Whether that is so though nobody has removed it. */
  readonly isAltered: boolean
  readonly receivedAt: number
}

/** Stored events one by one with their bytes, few of them in memory at a time, in the order of arrival. */
export async function* loadReplayedBodies(
  db: Kysely<Database>,
  seqs: readonly number[],
): AsyncGenerator<ReplayedBody> {
  for (let i = 0; i < seqs.length; i += BODIES_AT_ONCE) {
    const rows = await db
      .selectFrom('events')
      .select(['seq', 'endpoint', 'body_sha256', 'headers', 'body', 'received_at', 'body_removed'])
      .select(READ_COLUMNS)
      .where('seq', 'in', seqs.slice(i, i + BODIES_AT_ONCE))
      .orderBy('seq')
      .execute()
    for (const { body, received_at: receivedAt, body_removed, ...row } of rows) {
      const isOther = isAltered({ ...row, body, body_removed })
      yield { row, body: body_removed === null && !isOther ? body : null, isAltered: isOther, receivedAt }
    }
  }
}

/** What the body alone says. */
const FORM_COLUMNS = [
  'event_id',
  'generation',
  'type',
  'created_at',
  'normalizer_version',
  'normalized',
  'customer_id',
  'payment_id',
] as const

/** Whether the row says of its body what this reading does, by the program of today. */
export function hasSameForm(row: ReadColumns, reading: EventReading): boolean {
  const columns = columnsOf(reading)
  return FORM_COLUMNS.every((column) => row[column] === columns[column])
}

const update = bulkStatement(
  (rows) => sql`
    with told (seq, ${sql.join(FORM_COLUMNS.map((column) => sql.ref(column)))}) as (${rows})
    update events set
      event_id = told.event_id, generation = told.generation, type = told.type,
      created_at = cast(told.created_at as bigint), normalizer_version = cast(told.normalizer_version as bigint),
      normalized = told.normalized, customer_id = told.customer_id, payment_id = told.payment_id
    from told where events.seq = cast(told.seq as bigint)`,
)

const renameConflicts = bulkStatement(
  (names) => sql`
    with renamed (environment, event_id, next_id) as (${names})
    update event_conflicts set event_id = renamed.next_id from renamed
    where event_conflicts.environment = renamed.environment and event_conflicts.event_id = renamed.event_id`,
)

/**
 * Writes what the bodies say; not where the events belong, nor what became of them. Each row at most once; no id may be
 * another event's. Other bodies that came under an id go along with it.
 */
export async function rewriteForms(
  trx: Transaction<Database>,
  environment: Environment,
  readings: readonly { readonly row: ReplayedEvent; readonly reading: EventReading }[],
): Promise<void> {
  await update(
    trx,
    readings.map(({ row, reading }) => {
      const columns = columnsOf(reading)
      return [row.seq, ...FORM_COLUMNS.map((column) => columns[column])]
    }),
  )
  await renameConflicts(
    trx,
    readings
      .filter(({ row, reading }) => row.event_id !== reading.eventId)
      .map(({ row, reading }) => [environment, row.event_id, reading.eventId]),
  )
}
