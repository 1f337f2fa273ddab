import type { SourceKey } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'

/** A source of any environment. */
export interface StoredSourceKey extends SourceKey {
  readonly environment: Environment
}

/** One text for one event of one environment; no environment holds a space, so no two events share it. */
export function eventKey(environment: Environment, eventId: string): string {
  return `${environment} ${eventId}`
}
