import type { Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { newestManualAt } from '../store/manual-events.js'
import type { Database } from '../store/schema.js'
import { loadSourcesOfCustomers } from '../store/sources.js'
import type { ManualAct } from './delivery.js'
import { type PreparedDelivery, prepareAct } from './prepare.js'

/**
 * Tells when each act by hand happens: now, and after all that was done to the same customer before, even where
 * the clock stood still or was set back. So the order of acts is the order in which they were written. An erasure
 * comes after all that is stored of the customer: the provider's clock may run ahead of ours.
 */
export async function dateActs(
  trx: Transaction<Database>,
  incoming: readonly (PreparedDelivery | ManualAct)[],
  now: number,
): Promise<PreparedDelivery[]> {
  const newest = await loadNewest(trx, incoming.filter(isAct))
  return incoming.map((one) => {
    if (!isAct(one)) return one
    const customer = customerKey(one)
    const createdAt = Math.max(now, (newest.get(customer) ?? 0) + 1)
    newest.set(customer, createdAt)
    return prepareAct(one, createdAt, now)
  })
}

async function loadNewest(
  trx: Transaction<Database>,
  acts: readonly ManualAct[],
): Promise<Map<string, number>> {
  const newest = new Map<string, number>()
  for (const environment of new Set(acts.map((act) => act.environment))) {
    const own = acts.filter((act) => act.environment === environment)
    const customerIds = own.map(({ undated }) => undated.customerId)
    for (const [customerId, at] of await newestManualAt(trx, environment, customerIds)) {
      newest.set(keyOf(environment, customerId), at)
    }
    const erased = own.filter(({ undated }) => undated.type === 'manual.erased')
    const sources = await loadSourcesOfCustomers(
      trx,
      environment,
      erased.map(({ undated }) => undated.customerId),
    )
    for (const [customerId, states] of sources) {
      const key = keyOf(environment, customerId)
      newest.set(key, Math.max(newest.get(key) ?? 0, ...states.map(({ newestAt }) => newestAt)))
    }
  }
  return newest
}

function isAct(one: PreparedDelivery | ManualAct): one is ManualAct {
  return 'undated' in one
}

function customerKey({ environment, undated }: ManualAct): string {
  return keyOf(environment, undated.customerId)
}

function keyOf(environment: Environment, customerId: string): string {
  return `${environment} ${customerId}`
}
