import type { Environment, ManualEvent } from '../provider/event.js'
import type { DeliveryInput, SignedHeaders } from '../store/events.js'

/** The result of a delivery; `duplicate`: it was stored already, and nothing changed. */
export type Disposition = 'applied' | 'ignored' | 'held' | 'quarantined' | 'duplicate'

/** One authentic request: its signature has been checked, its body has not been read. */
export interface Delivery extends DeliveryInput {
  readonly headers: SignedHeaders
}

/** A change by hand, to be written like a delivery; its time is set when it is written. */
export interface ManualAct {
  readonly environment: Environment
  readonly undated: Omit<ManualEvent, 'createdAt'>
}

/** A delivery, an event or a change by hand from an export, or a new change by hand. */
export type Incoming = DeliveryInput | ManualAct

/** The answer to one delivery: committed, and visible to every query that starts after it. */
export interface Receipt {
  /** Null if the body has no usable id. */
  readonly id: string | null
  readonly disposition: Disposition
}
