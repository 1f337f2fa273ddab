/* What a transaction knows of the store before it writes. */

import type { SourceKey, SourceState } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import { loadCustomers, loadForms, loadHistoriesOf } from '../store/customers.js'
import { loadEntitlements } from '../store/entitlements.js'
import { loadManualEvents, loadStoredHashes } from '../store/events.js'
import type { Tx } from '../store/schema.js'
import { loadLinks, loadSources, loadSourcesOfCustomers } from '../store/sources.js'

/** Answers about one environment, each read once: what is asked ahead need not be waited for later. */
export type Known = ReturnType<typeof createKnown>

export function createKnown(trx: Tx, environment: Environment) {
  const byText = <Value>(
    load: (trx: Tx, environment: Environment, ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
  ) =>
    remembering<string, string, Value>(
      (ids) => load(trx, environment, ids),
      (id) => id,
    )
  return {
    environment,
    /** The hashes of stored bodies, by event id. */
    hashes: byText(loadStoredHashes),
    /** By payment id. */
    links: byText(loadLinks),
    /** By `sourceKey`. */
    sources: remembering((keys: readonly SourceKey[]) => loadSources(trx, environment, keys), sourceKey),
    /** By customer id, like all that follow. */
    customers: byText(loadCustomers),
    sourcesOf: byText<readonly SourceState[]>(loadSourcesOfCustomers),
    acts: byText(loadManualEvents),
    entitlements: byText(loadEntitlements),
    /** Few batches need these, which are not asked ahead: the histories of a customer's sources, and events by number. */
    historiesOf: (customerId: string) => loadHistoriesOf(trx, environment, [customerId]),
    forms: (seqs: readonly number[]) => loadForms(trx, seqs),
  }
}

/** @returns what was found of these keys */
function remembering<Key, Name, Value>(
  load: (keys: readonly Key[]) => Promise<ReadonlyMap<Name, Value>>,
  nameOf: (key: Key) => Name,
) {
  /** Null: there is nothing. */
  const known = new Map<Name, Value | null>()
  return async (keys: readonly Key[]): Promise<ReadonlyMap<Name, Value>> => {
    const unknown = keys.filter((key) => !known.has(nameOf(key)))
    if (unknown.length > 0) {
      const loaded = await load(unknown)
      if (known.size === 0 && unknown.length === keys.length) {
        for (const key of keys) known.set(nameOf(key), loaded.get(nameOf(key)) ?? null)
        return loaded
      }
      for (const key of unknown) known.set(nameOf(key), loaded.get(nameOf(key)) ?? null)
    }
    const found = new Map<Name, Value>()
    for (const key of keys) {
      const value = known.get(nameOf(key)) ?? null
      if (value !== null) found.set(nameOf(key), value)
    }
    return found
  }
}
