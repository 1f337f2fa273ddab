import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import { columnsOf, type EventReading, READ_COLUMNS, type ReadColumns } from './event-reading.js'
import type { Database } from './schema.js'
import { isAltered } from './stored-form.js'

/** A body has up to a mebibyte, and only so many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** A stored event as it stands, without its bytes. */
export interface StandingEvent extends ReadColumns {
  readonly seq: number
  readonly endpoint: string
  readonly body_sha256: string
  /** The text `null` for what was done by hand. */
  readonly headers: string
}

export interface StandingBody {
  readonly row: StandingEvent
  /** Null: it is not there as it came, so that it can't be read again. */
  readonly body: Buffer | null
  /** Whether that is so though nobody has removed it. */
  readonly isAltered: boolean
  readonly receivedAt: number
}

/** Shows stored events one by one with their bytes, few of them in memory at a time, in the order of arrival. */
export async function* loadStandingEvents(
  db: Kysely<Database>,
  seqs: readonly number[],
): AsyncGenerator<StandingBody> {
  for (let i = 0; i < seqs.length; i += BODIES_AT_ONCE) {
    const rows = await db
      .selectFrom('events')
      .select([
        'seq',
        'endpoint',
        'body_sha256',
        'headers',
        'body',
        'received_at',
        'body_removed',
        ...READ_COLUMNS,
      ])
      .where('seq', 'in', seqs.slice(i, i + BODIES_AT_ONCE))
      .orderBy('seq')
      .execute()
    for (const { body, received_at: receivedAt, body_removed, ...row } of rows) {
      const isOther = isAltered({ ...row, body, body_removed })
      yield { row, body: body_removed === null && !isOther ? body : null, isAltered: isOther, receivedAt }
    }
  }
}

/** Whether the row says this already, by the program of today. */
export function saysTheSame(row: StandingEvent, reading: EventReading): boolean {
  const columns = columnsOf(reading)
  return READ_COLUMNS.every((column) => row[column] === columns[column])
}

const update = bulkStatement(
  (rows) => sql`
    with told (seq, ${sql.join(READ_COLUMNS.map((column) => sql.ref(column)))}) as (${rows})
    update events set
      event_id = told.event_id, disposition = told.disposition, reason = told.reason,
      generation = told.generation, type = told.type, created_at = cast(told.created_at as bigint),
      normalizer_version = cast(told.normalizer_version as bigint), normalized = told.normalized,
      customer_id = told.customer_id, payment_id = told.payment_id,
      source_kind = told.source_kind, source_id = told.source_id
    from told where events.seq = cast(told.seq as bigint)`,
)

const renameConflicts = bulkStatement(
  (names) => sql`
    with renamed (environment, event_id, next_id) as (${names})
    update event_conflicts set event_id = renamed.next_id from renamed
    where event_conflicts.environment = renamed.environment and event_conflicts.event_id = renamed.event_id`,
)

/** Each row at most once; no id may be another event's. Other bodies that came under an id go along with it. */
export async function rewriteEvents(
  trx: Transaction<Database>,
  environment: Environment,
  readings: readonly (EventReading & { readonly row: StandingEvent })[],
): Promise<void> {
  await update(
    trx,
    readings.map((reading) => {
      const columns = columnsOf(reading)
      return [reading.row.seq, ...READ_COLUMNS.map((column) => columns[column])]
    }),
  )
  await renameConflicts(
    trx,
    readings
      .filter(({ row, eventId }) => row.event_id !== eventId)
      .map(({ row, eventId }) => [environment, row.event_id, eventId]),
  )
}
