import { setImmediate as turn } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { Policy } from '../entitlements/policy.js'
import { isLatchkeyError } from '../errors.js'
import { loadAffectedCustomers, replaceWithNextState } from '../store/next-state.js'
import { savePolicy } from '../store/policy.js'
import { clearRebuild } from '../store/rebuild-progress.js'
import type { Database } from '../store/schema.js'
import { setSourcelessDispositions } from '../store/sourceless-events.js'
import type { DifferenceCounter } from './access-difference.js'
import { refreshAllDue } from './refresh-due.js'
import { rewriteAccess } from './rewrite-access.js'
import { sourcelessOutcomesUnder } from './sourceless-outcomes.js'

/** How many customers are settled by one set of statements. */
const CUSTOMERS_PER_STEP = 500

/**
 * Puts what a rebuild has found in the place of what stands, with the policy it was found under, and appends
 * what changes for anybody to the change log. All of it in the one transaction of the caller.
 * @param counter told of every entitlement that changes
 */
export async function swapRebuilt(
  trx: Transaction<Database>,
  policy: Policy,
  now: number,
  counter: Pick<DifferenceCounter, 'add'>,
): Promise<void> {
  await tellDue(trx, now)
  const affected = await loadAffectedCustomers(trx)
  await replaceWithNextState(trx)
  await clearRebuild(trx)
  await savePolicy(trx, policy)
  await setSourcelessDispositions(trx, sourcelessOutcomesUnder(policy))
  for (const [environment, customerIds] of affected) {
    for (let i = 0; i < customerIds.length; i += CUSTOMERS_PER_STEP) {
      const some = customerIds.slice(i, i + CUSTOMERS_PER_STEP)
      for (const difference of await rewriteAccess(trx, environment, some, now)) counter.add(difference)
      // Questions go on being answered, from what stood before.
      await turn()
    }
  }
}

/**
 * What the clock has changed is told as that, not as the rebuild's; but for what follows from a state that can't be read
 * before it is replaced.
 */
async function tellDue(trx: Transaction<Database>, now: number): Promise<void> {
  try {
    await refreshAllDue(trx, now)
  } catch (error) {
    if (!isLatchkeyError(error, 'store_unavailable')) throw error
  }
}
