import type { Transaction } from 'kysely'
import { isLatchkeyError } from '../errors.js'
import { differencesOf, type EntitlementDifference, refreshAllDue, writeAccess } from '../ingest/settle.js'
import type { Environment } from '../provider/event.js'
import { loadEntitlements } from '../store/entitlements.js'
import { moveEvents } from '../store/group-rows.js'
import { deleteLinks, saveLinks } from '../store/payment-links.js'
import { rewriteForms } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'
import { deleteSources, replaceSources } from '../store/sources.js'
import { type GroupDifferences, isDueBy } from './compare.js'

/**
 * Writes what differs in a group, and appends what changes for anybody to the change log.
 * @returns whether anything did
 */
export async function applyGroup(
  trx: Transaction<Database>,
  environment: Environment,
  { readings, moved, links, unlinked, sources, access }: GroupDifferences,
  now: number,
): Promise<boolean> {
  const changed = await accessToWrite(trx, environment, access, now)
  await rewriteForms(trx, environment, readings)
  await moveEvents(trx, moved)
  await saveLinks(trx, environment, links)
  await deleteLinks(trx, environment, unlinked)
  const folded = sources.flatMap((one) => one.folded ?? [])
  const gone = sources.filter((one) => one.folded === null).map(({ key }) => key)
  await replaceSources(trx, environment, folded)
  await deleteSources(trx, environment, gone)
  await writeAccess(trx, environment, changed, now, () => ({ kind: 'rebuild', eventId: null }))
  return [readings, moved, links, unlinked, sources, changed].some(({ length }) => length > 0)
}

async function accessToWrite(
  trx: Transaction<Database>,
  environment: Environment,
  access: GroupDifferences['access'],
  now: number,
): Promise<readonly EntitlementDifference[]> {
  const changed = [...access].filter(([, { stored, after }]) => differencesOf(stored, after).length > 0)
  const isAnyDue = changed.some(([, { stored }]) => stored.some((record) => isDueBy(record, now)))
  if (isAnyDue) await refreshWhatIsDue(trx, now)
  const ids = changed.map(([customerId]) => customerId)
  const stored = isAnyDue ? await loadEntitlements(trx, environment, ids) : null
  return changed.flatMap(([customerId, one]) =>
    differencesOf(stored?.get(customerId) ?? one.stored, one.after),
  )
}

/**
 * The change log says of what the clock has changed that the clock did, and not the rebuild; but for what follows from a
 * state that can't be read before it is replaced.
 */
async function refreshWhatIsDue(trx: Transaction<Database>, now: number): Promise<void> {
  try {
    await refreshAllDue(trx, now)
  } catch (error) {
    if (!isLatchkeyError(error, 'store_unavailable')) throw error
  }
}
