/* What a transaction knows of the store before it writes. */

import type { SourceKey, SourceState } from '../entitlements/model.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment } from '../provider/event.js'
import { loadCustomers, loadForms, loadHistoriesOf } from '../store/customers.js'
import { loadEntitlements } from '../store/entitlements.js'
import { loadManualEvents, loadStoredHashes } from '../store/events.js'
import type { Tx } from '../store/schema.js'
import { loadLinks, loadSources, loadSourcesOfCustomers, readHistory } from '../store/sources.js'
import type { LockKind, Locks } from './locks.js'

/** Answers about one environment, each read once: what is asked ahead need not be waited for later. */
export type Known = ReturnType<typeof createKnown>

export function createKnown(trx: Tx, environment: Environment, locks: Locks) {
  type Load<Value> = (
    trx: Tx,
    environment: Environment,
    ids: readonly string[],
  ) => Promise<ReadonlyMap<string, Value>>
  const byText = <Value>(load: Load<Value>, kind?: LockKind) =>
    remembering<string, string, Value>(
      (ids) => {
        if (kind !== undefined) for (const id of ids) locks.need({ environment, kind, id })
        return load(trx, environment, ids)
      },
      (id) => id,
    )

  /** A source is folded under its own lock, and those of everybody who may gain or lose by that. */
  async function loadLocked(keys: readonly SourceKey[]) {
    for (const { kind, id } of keys) if (kind !== 'manual') locks.need({ environment, kind, id })
    const sources = await loadSources(trx, environment, keys)
    for (const source of sources.values()) {
      for (const { customerId: id } of [source.state, ...readHistory(source)])
        if (id !== null) locks.need({ environment, kind: 'customer', id })
    }
    return sources
  }

  return {
    environment,
    /** The hashes of stored bodies, by event id. */
    hashes: byText(loadStoredHashes),
    /** By payment id. */
    links: byText(loadLinks, 'payment'),
    /** By `sourceKey`. */
    sources: remembering(loadLocked, sourceKey),
    /** By customer id, like all that follow. */
    customers: byText(loadCustomers, 'customer'),
    sourcesOf: byText<readonly SourceState[]>(loadSourcesOfCustomers, 'customer'),
    acts: byText(loadManualEvents, 'customer'),
    entitlements: byText(loadEntitlements, 'customer'),
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
