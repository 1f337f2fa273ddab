import type { Kysely } from 'kysely'
import type { Environment } from '../provider/event.js'
import { loadChanges } from '../store/changes.js'
import type { Database } from '../store/schema.js'
import {
  type AccessDifference,
  createDifferenceCounter,
  type DifferenceSummary,
} from './access-difference.js'
import { isChange } from './save-access.js'

/** Enough to look through; the counts tell of all. */
const SAMPLE_SIZE = 1_000

const CHANGES_AT_ONCE = 1_000

/** What reading events anew has changed since a place in the change log, each entitlement once: before and after. */
export async function replayEffects(
  db: Kysely<Database>,
  environment: Environment,
  changesAfter: number,
): Promise<DifferenceSummary> {
  const effects = new Map<string, AccessDifference>()
  let after: number | undefined = changesAfter
  while (after !== undefined) {
    const changes = await loadChanges(db, environment, after, CHANGES_AT_ONCE)
    for (const change of changes) {
      if (change.cause.kind !== 'rebuild') continue
      const { customerId, productId } = change
      const name = JSON.stringify([customerId, productId])
      const before = effects.get(name)?.before ?? change.before
      effects.set(name, { environment, customerId, productId, before, after: change.after })
    }
    after = changes.at(-1)?.cursor
  }
  const counter = createDifferenceCounter(SAMPLE_SIZE)
  for (const effect of effects.values()) if (isChange(effect.before, effect.after)) counter.add(effect)
  return counter.summary()
}
