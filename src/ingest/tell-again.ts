import type { Transaction } from 'kysely'
import type { SourceKey } from '../entitlements/model.js'
import { saveCustomerFacts } from '../store/customers.js'
import { deleteLinks, loadDoubtedLinks } from '../store/doubted-links.js'
import { movePaymentEvents, type PaymentMove } from '../store/events.js'
import { sourceKey } from '../store/keys.js'
import { loadTellings } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'
import { assignSources } from './assign-sources.js'
import { markDeletions } from './mark-deletions.js'
import type { ReplayTerms } from './replay-batch.js'
import { settleSources } from './settle-sources.js'

/**
 * Learns again from the next stored events of an environment what they tell of links and people: where something was
 * taken back, the newest of the others counts.
 * @returns the `seq` of the last of them; null where there is none any more
 */
export async function tellAgain(
  trx: Transaction<Database>,
  beyond: number,
  limit: number,
  { environment, policy, now }: ReplayTerms,
): Promise<number | null> {
  const { events, last } = await loadTellings(trx, environment, beyond, limit)
  const { moves } = await assignSources(trx, environment, events)
  await movePaymentEvents(trx, environment, moves)
  await saveCustomerFacts(trx, environment, events)
  await markDeletions(trx, environment, events)
  await settleSources(trx, environment, sourcesOf(moves), policy, now)
  return last
}

/**
 * Once all events have told again: unties payments that none of them links any more.
 * @returns how many there were
 */
export async function untiePayments(
  trx: Transaction<Database>,
  limit: number,
  { environment, policy, now }: ReplayTerms,
): Promise<number> {
  const untied = await loadDoubtedLinks(trx, environment, limit)
  const moves = untied.map(({ paymentId, subscriptionId }) => ({
    paymentId,
    from: { kind: 'subscription', id: subscriptionId } satisfies SourceKey,
    to: { kind: 'payment', id: paymentId } satisfies SourceKey,
  }))
  await deleteLinks(
    trx,
    environment,
    untied.map(({ paymentId }) => paymentId),
  )
  await movePaymentEvents(trx, environment, moves)
  await settleSources(trx, environment, sourcesOf(moves), policy, now)
  return untied.length
}

/** Where payments come from and go to, each once. */
function sourcesOf(moves: readonly PaymentMove[]): readonly SourceKey[] {
  const keys = moves.flatMap(({ from, to }) => [from, to])
  return [...new Map(keys.map((key) => [sourceKey(key), key])).values()]
}
