import type { Kysely, Transaction } from 'kysely'
import { isNewerLink, type PaymentLink } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import { chunkRows } from './chunk.js'
import type { Database } from './schema.js'

/** A payment whose events now belong to another source: a subscription (`to`) that is not the one before, if any. */
export interface LinkChange {
  readonly paymentId: string
  readonly from: string | null
  readonly to: string
  /** The id of the event that says so. */
  readonly linkedBy: string
}

const VALUES_PER_ROW = 5

/** By payment id; a payment that no event links is not in the map. */
export async function loadLinks(
  db: Kysely<Database>,
  environment: Environment,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, PaymentLink>> {
  const found = new Map<string, PaymentLink>()
  for (const chunk of chunkRows(paymentIds, 1)) {
    const rows = await db
      .selectFrom('payment_links')
      .selectAll()
      .where('environment', '=', environment)
      .where('payment_id', 'in', chunk)
      .execute()
    for (const row of rows) {
      found.set(row.payment_id, {
        paymentId: row.payment_id,
        subscriptionId: row.subscription_id,
        linkedAt: row.linked_at,
        linkedBy: row.linked_by,
      })
    }
  }
  return found
}

/**
 * Learns links, and answers which payments belong elsewhere from now on. Where namings disagree the newest
 * counts, by time, then by the naming event's id: so the order of learning does not matter.
 */
export async function saveLinks(
  trx: Transaction<Database>,
  environment: Environment,
  namings: readonly PaymentLink[],
): Promise<readonly LinkChange[]> {
  const stored = await loadLinks(trx, environment, [...new Set(namings.map(({ paymentId }) => paymentId))])
  const newest = new Map<string, PaymentLink>()
  for (const naming of namings) {
    const known = newest.get(naming.paymentId) ?? stored.get(naming.paymentId)
    if (isNewerLink(naming, known)) newest.set(naming.paymentId, naming)
  }
  await replaceLinks(trx, environment, [...newest.values()])
  return [...newest.values()]
    .map(({ paymentId, subscriptionId, linkedBy }) => ({
      paymentId,
      linkedBy,
      from: stored.get(paymentId)?.subscriptionId ?? null,
      to: subscriptionId,
    }))
    .filter(({ from, to }) => from !== to)
}

async function replaceLinks(
  trx: Transaction<Database>,
  environment: Environment,
  links: readonly PaymentLink[],
): Promise<void> {
  for (const chunk of chunkRows(links, VALUES_PER_ROW)) {
    await trx
      .insertInto('payment_links')
      .values(
        chunk.map((link) => ({
          environment,
          payment_id: link.paymentId,
          subscription_id: link.subscriptionId,
          linked_at: link.linkedAt,
          linked_by: link.linkedBy,
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(['environment', 'payment_id']).doUpdateSet((eb) => ({
          subscription_id: eb.ref('excluded.subscription_id'),
          linked_at: eb.ref('excluded.linked_at'),
          linked_by: eb.ref('excluded.linked_by'),
        })),
      )
      .execute()
  }
}
