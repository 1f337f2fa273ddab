import type { ManualEvent } from '../provider/event.js'
import type { SourceKey } from './model.js'

/** What the rules read of a grant by hand, or of its end: the only acts that a source is folded from. */
export interface GrantAct extends Pick<ManualEvent, 'subject' | 'id' | 'createdAt' | 'customerId' | 'until'> {
  readonly type: 'manual.granted' | 'manual.revoked'
  readonly productId: string
}

export function isGrantAct(event: ManualEvent): event is ManualEvent & GrantAct {
  const isGrant = event.type === 'manual.granted' || event.type === 'manual.revoked'
  return isGrant && event.productId !== null
}

/** All that was ever granted to one customer of one product by hand is one source. */
export function manualSource({ customerId, productId }: GrantAct): SourceKey {
  // Ids hold any character: encoded, neither can hold the one that parts them.
  return { kind: 'manual', id: `${encodeURIComponent(customerId)}/${encodeURIComponent(productId)}` }
}
