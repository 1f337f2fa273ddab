import type { Environment, ManualEvent } from '../provider/event.js'
import type { StoredDelivery } from '../store/event-questions.js'

/** What became of a delivery; `duplicate`: it was stored already, and nothing changed. */
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

/** Something done by hand, to be written like a delivery; when it happened is told as it is written. */
export interface ManualAct {
  readonly environment: Environment
  readonly undated: Omit<ManualEvent, 'createdAt'>
}

/** A delivery, or something done by hand as an export has it: the event is its body, and nobody signed it. */
export type RecordedDelivery = StoredDelivery

export type Incoming = RecordedDelivery | ManualAct

/** The answer to one delivery: committed, and visible to every query that starts after it. */
export interface Receipt {
  /** Null where the body holds no usable id. */
  readonly id: string | null
  readonly disposition: Disposition
}
