import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from './environments.js'
import type { Database } from './schema.js'

/*
 * What becomes of an event that names no source, or none that is known, follows from its row alone: from its type, from
 * whether it was done by hand, and from whether it could be read.
 */

/**
 * Tells anew of the events without a source what became of them.
 * @param decisive the types that would grant or take back: of these, one without a source waits for it
 */
export async function setSourcelessDispositions(
  trx: Transaction<Database>,
  decisive: readonly string[],
): Promise<void> {
  for (const { of, right } of rulesFor(decisive)) {
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
  decisive: readonly string[],
): Promise<readonly SourcelessEvent[]> {
  const rows = await db
    .selectFrom('events')
    .select(['environment', 'event_id'])
    .where('environment', 'in', ENVIRONMENTS)
    .where('source_kind', 'is', null)
    .where((eb) => eb.or(rulesFor(decisive).map(({ of, right }) => isOtherwise(of, right))))
    .orderBy('seq')
    .execute()
  return rows.map(({ environment, event_id: eventId }) => ({ environment, eventId }))
}

function rulesFor(decisive: readonly string[]) {
  const waits = decisive.length === 0 ? sql`1 = 0` : sql`type in (${sql.join(decisive)})`
  return [
    { of: sql`headers <> 'null' and ${waits}`, right: { disposition: 'held', reason: 'source_unknown' } },
    { of: sql`headers <> 'null' and not ${waits}`, right: { disposition: 'ignored', reason: null } },
    // Done by hand, and signed by nobody.
    { of: sql`headers = 'null'`, right: { disposition: 'applied', reason: null } },
  ] as const
}

type Rule = ReturnType<typeof rulesFor>[number]

/** Of those that could be read: why others could not, their bytes alone say. */
function isOtherwise(of: Rule['of'], { disposition, reason }: Rule['right']): RawBuilder<boolean> {
  const isRight = sql`disposition = ${disposition} and coalesce(reason, '') = ${reason ?? ''}`
  return sql<boolean>`(normalized is not null and ${of} and not (${isRight}))`
}
