import type { TargetRef } from '../store/memberships.js'
import type { SyncedProduct } from './sync.js'
import { type AdapterName, parseTargetKey, type Target, targetKey } from './target.js'

/** A target that memberships are kept for. */
export interface SyncTarget extends TargetRef {
  readonly adapter: AdapterName
  readonly of: Target
}

/**
 * Every target that is configured, or was: what was given in one that no product is mapped to any more is to be taken
 * back still.
 */
export function targetsOf(
  products: readonly SyncedProduct[],
  stored: readonly TargetRef[],
): readonly SyncTarget[] {
  const configured = products.flatMap(({ targets }) => targets)
  const former = stored.flatMap(({ environment, target }) => parseTargetKey(target, environment) ?? [])
  const found = new Map<string, SyncTarget>()
  for (const of of [...configured, ...former]) {
    const target = targetKey(of)
    found.set(`${of.environment} ${target}`, {
      environment: of.environment,
      target,
      adapter: of.adapter,
      of,
    })
  }
  return [...found.values()]
}
