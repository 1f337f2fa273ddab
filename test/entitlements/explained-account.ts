import { type Explanation, explain, type StoredAccount } from '../../src/entitlements/explain.js'
import type { FoldableEvent } from '../../src/entitlements/fold-source.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { minute } from './events.js'

export type Sources = readonly (readonly [SourceKey, readonly FoldableEvent[]])[]

function account(sources: Sources, fields: Partial<StoredAccount> = {}): StoredAccount {
  return {
    customerId: 'cus_1',
    environment: 'live',
    isKnown: true,
    sources: sources.map(([key, events]) => ({
      key,
      events: events.map((event) => ({ event, receivedAt: event.createdAt, disposition: 'applied' })),
    })),
    blocks: [],
    erasures: [],
    holds: [],
    ...fields,
  }
}

/** Why `cus_1` may use `pro_a` at a minute of the example, or may not. */
export function explainAt(at: number, sources: Sources, fields: Partial<StoredAccount> = {}): Explanation {
  return explain(account(sources, fields), 'pro_a', { at: minute(at) }, DOCUMENTED_POLICY)
}
