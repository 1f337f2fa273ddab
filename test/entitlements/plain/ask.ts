import type { HoldReason } from '../../../src/entitlements/model.js'
import { DOCUMENTED_POLICY, type Policy } from '../../../src/entitlements/policy.js'
import type { NormalizedEvent } from '../../../src/provider/event.js'
import type { PlainSourceEvents } from './entitlements.js'
import { plainHeld } from './held.js'
import { plainSourceKeys } from './source-keys.js'

/** The sources of a mixed set of events, each with all of its own. */
export function plainSources(
  events: readonly NormalizedEvent[],
  policy: Policy = DOCUMENTED_POLICY,
): readonly PlainSourceEvents[] {
  const sources = new Map<string, PlainSourceEvents>()
  const keys = plainSourceKeys(events)
  for (const event of events) {
    const key = keys.get(event.id)
    if (!key) continue
    const name = `${key.kind}:${key.id}`
    sources.set(name, { key, policy, events: [...(sources.get(name)?.events ?? []), event] })
  }
  return [...sources.values()]
}

/** Every event that waits, whatever its source. */
export function heldOf(
  events: readonly NormalizedEvent[],
  policy: Policy = DOCUMENTED_POLICY,
): Record<string, HoldReason> {
  const held = plainSources(events, policy).map(({ events: own, key }) => plainHeld(own, key, policy))
  return Object.assign({}, ...held)
}
