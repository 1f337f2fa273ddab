import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { Outcome, SourcelessOutcomes } from '../entitlements/disposition.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from './environments.js'
import type { Database } from './schema.js'

/** Tells anew of the events without a source what became of them. */
export async function setSourcelessDispositions(
  trx: Transaction<Database>,
  outcomes: SourcelessOutcomes,
): Promise<void> {
  for (const { of, right } of rulesFor(outcomes)) {
    await trx
      .updateTable('events')
      .set(right)
      // All there are: named, so that the index of sources leads to these events alone.
      .where('environment', 'in', ENVIRONMENTS)
      .where('source_kind', 'is', null)
      .where(isOtherwise(of, right))
      .execute()
  }
}

export interface SourcelessEvent {
  readonly environment: Environment
  readonly eventId: string
}

/** Those of which something else is told than became of them, in the order of arrival. */
export async function loadSourcelessOtherwise(
  db: Kysely<Database>,
  outcomes: SourcelessOutcomes,
): Promise<readonly SourcelessEvent[]> {
  const rows = await db
    .selectFrom('events')
    .select(['environment', 'event_id'])
    .where('environment', 'in', ENVIRONMENTS)
    .where('source_kind', 'is', null)
    .where((eb) => eb.or(rulesFor(outcomes).map(({ of, right }) => isOtherwise(of, right))))
    .orderBy('seq')
    .execute()
  return rows.map(({ environment, event_id: eventId }) => ({ environment, eventId }))
}

interface Rule {
  /** Which events, by their rows alone. */
  readonly of: RawBuilder<unknown>
  readonly right: Outcome
}

function rulesFor({ decisive: { types, outcome }, byHand, others }: SourcelessOutcomes): readonly Rule[] {
  const isDecisive = types.length === 0 ? sql`1 = 0` : sql`type in (${sql.join(types)})`
  return [
    { of: sql`headers <> 'null' and ${isDecisive}`, right: outcome },
    { of: sql`headers <> 'null' and not ${isDecisive}`, right: others },
    // Nobody signs what is done by hand.
    { of: sql`headers = 'null'`, right: byHand },
  ]
}

/** Of those that could be read: why others could not, their bytes alone say. */
function isOtherwise(of: Rule['of'], { disposition, reason }: Outcome): RawBuilder<boolean> {
  const isRight = sql`disposition = ${disposition} and coalesce(reason, '') = ${reason ?? ''}`
  return sql<boolean>`(normalized is not null and ${of} and not (${isRight}))`
}
