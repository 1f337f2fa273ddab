import type { Transaction } from 'kysely'
import type { Database } from './schema.js'

/**
 * Tells anew of the events that name no source which of them wait for one. Their type alone decides.
 * @param decisive the types that would grant or take back
 * @param informing all other types of payment, checkout and subscription events
 */
export async function setSourcelessDispositions(
  trx: Transaction<Database>,
  decisive: readonly string[],
  informing: readonly string[],
): Promise<void> {
  const update = trx
    .updateTable('events')
    // All there are: named, so that the index of sources leads to these events alone.
    .where('environment', 'in', ['live', 'sandbox'])
    .where('source_kind', 'is', null)
  if (decisive.length > 0) {
    await update
      .set({ disposition: 'held', reason: 'source_unknown' })
      .where('type', 'in', decisive)
      .where('disposition', '=', 'ignored')
      .execute()
  }
  if (informing.length > 0) {
    await update
      .set({ disposition: 'ignored', reason: null })
      .where('type', 'in', informing)
      .where('disposition', '=', 'held')
      .execute()
  }
}
