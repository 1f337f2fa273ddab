import type { Environment, ManualEvent } from '../provider/event.js'
import type { StoredDelivery } from '../store/event-questions.js'

/** The result of a delivery; `duplicate`: it was stored already, and nothing changed. */
export type Disposition = 'applied' | 'ignored' | 'held' | 'quarantined' | 'duplicate'

/** One authentic request: its signature has been checked, its body has not been read. */
export interface Delivery {
  readonly endpoint: string
  readonly environment: Environment
  /** The exact bytes that were signed. */
  readonly body: Buffer
  /** As received, so that an export can be checked again. */
  readonly headers: { readonly event: string | null; readonly timestamp: string; readonly signature: string }
  /** Epoch milliseconds. */
  readonly receivedAt: number
}

/** A change by hand, to be written like a delivery; its time is set when it is written. */
export interface ManualAct {
  readonly environment: Environment
  readonly undated: Omit<ManualEvent, 'createdAt'>
}

/** A delivery, or a change by hand from an export: its body is the event, and it is not signed. */
export type RecordedDelivery = StoredDelivery

export type Incoming = RecordedDelivery | ManualAct

/** The answer to one delivery: committed, and visible to every query that starts after it. */
export interface Receipt {
  /** Null if the body has no usable id. */
  readonly id: string | null
  readonly disposition: Disposition
}
