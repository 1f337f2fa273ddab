import type { Environment } from '../provider/event.js'
import type { Entitlement } from './model.js'

/**
 * Everything that one customer may use in one environment, as it stands at one instant. All instants
 * are epoch milliseconds. A customer never seen has no entitlements.
 */
export interface AccessAnswer {
  readonly customerId: string
  readonly environment: Environment
  readonly asOf: number
  /** The next instant at which this answer changes by itself; null: only an event can change it. */
  readonly validUntil: number | null
  /** Where in the change log the answer stands. */
  readonly cursor: string
  /** Whether a block stands on every product, those never granted included. */
  readonly blocked: boolean
  readonly entitlements: readonly Entitlement[]
}
