import type { AccessInterval, SourceKey } from '../../../src/entitlements/model.js'
import type { Policy } from '../../../src/entitlements/policy.js'
import type { NormalizedEvent } from '../../../src/provider/event.js'
import { beginningOf, endingOf } from './causes.js'
import { endsAfter } from './ends.js'
import { type PlainSource, readSource } from './source.js'
import { accessOf, stateAfter, walkedAt } from './state.js'

/**
 * What a source gives at `instant`, worked out from nothing. All `events` belong to the source.
 * `end` is the earliest end of that access known at the instant; null where there is none.
 */
export function plainSourceAt(
  events: readonly NormalizedEvent[],
  key: SourceKey,
  policy: Policy,
  instant: number,
): { access: string | null; end: number | null } {
  const source = readSource(events, key, policy)
  const state = stateAfter(source, walkedAt(source, instant))
  const access = accessOf(state, instant)
  return { access, end: access === null ? null : (state.end?.at ?? null) }
}

/** The access intervals of a source: asks it at every instant at which its answer could change. */
export function plainIntervals(
  events: readonly NormalizedEvent[],
  key: SourceKey,
  policy: Policy,
): readonly AccessInterval[] {
  const source = readSource(events, key, policy)
  return stretchesOf(source).map(({ productId, from, until }) => {
    if (until === null)
      return { productId, from, until, reason: null, eventId: beginningOf(source, productId, from) }
    return { productId, from, until, ...endingOf(source, productId, until) }
  })
}

interface Stretch {
  readonly productId: string
  readonly from: number
  readonly until: number | null
}

function stretchesOf(source: PlainSource): readonly Stretch[] {
  const answers = criticalInstants(source).map((instant) => ({
    productId: accessOf(stateAfter(source, walkedAt(source, instant)), instant),
    from: instant,
  }))
  const changes = answers.filter(
    ({ productId }, index) => productId !== (answers[index - 1]?.productId ?? null),
  )
  return changes.flatMap(({ productId, from }, index) =>
    productId === null ? [] : [{ productId, from, until: changes[index + 1]?.from ?? null }],
  )
}

/** Every event's instant, and every end that was ever known. */
function criticalInstants(source: PlainSource): readonly number[] {
  const instants = source.events.flatMap(({ createdAt }) => [
    createdAt,
    ...endsAfter(source, walkedAt(source, createdAt)).map(({ at }) => at),
  ])
  return [...new Set(instants)].sort((one, other) => one - other)
}
