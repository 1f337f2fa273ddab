import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from './environments.js'
import type { Database } from './schema.js'

/** The types of payment, checkout and subscription events: by these alone, one without a source waits or does not. */
export interface SourcelessTypes {
  /** Those that would grant or take back. */
  readonly decisive: readonly string[]
  readonly informing: readonly string[]
}

/** Tells anew of the events that name no source which of them wait for one. */
export async function setSourcelessDispositions(
  trx: Transaction<Database>,
  types: SourcelessTypes,
): Promise<void> {
  for (const { of, wrong, right } of rulesFor(types)) {
    await trx
      .updateTable('events')
      .set(right)
      // All there are: named, so that the index of sources leads to these events alone.
      .where('environment', 'in', ENVIRONMENTS)
      .where('source_kind', 'is', null)
      .where('type', 'in', of)
      .where('disposition', '=', wrong)
      .execute()
  }
}

export interface SourcelessEvent {
  readonly environment: Environment
  readonly eventId: string
}

/** Those that wait and should not, or should and don't, in the order of arrival. */
export async function loadSourcelessOtherwise(
  db: Kysely<Database>,
  types: SourcelessTypes,
): Promise<readonly SourcelessEvent[]> {
  const rules = rulesFor(types)
  const rows = await db
    .selectFrom('events')
    .select(['environment', 'event_id'])
    .where('environment', 'in', ENVIRONMENTS)
    .where('source_kind', 'is', null)
    .where((eb) =>
      eb.or(rules.map(({ of, wrong }) => eb.and([eb('type', 'in', of), eb('disposition', '=', wrong)]))),
    )
    .orderBy('seq')
    .execute()
  return rows.map(({ environment, event_id: eventId }) => ({ environment, eventId }))
}

function rulesFor({ decisive, informing }: SourcelessTypes) {
  const rules = [
    { of: decisive, wrong: 'ignored', right: { disposition: 'held', reason: 'source_unknown' } },
    { of: informing, wrong: 'held', right: { disposition: 'ignored', reason: null } },
  ] as const
  return rules.filter(({ of }) => of.length > 0)
}
