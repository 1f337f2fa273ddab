import type { Environment, ManualEvent, NormalizedEvent } from '../provider/event.js'
import type { RemovedBody } from '../store/events.js'

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

/** A delivery, or something done by hand as an export tells it: the event is its body, and nobody signed it. */
export interface RecordedDelivery extends Omit<Delivery, 'headers'> {
  readonly headers: Delivery['headers'] | null
  /** Only where the body is not the one that came, but what is left of it, or empty. */
  readonly reading?: ToldReading
}

/** What an event was read as whose bytes are not there any more as they were signed. */
export interface ToldReading {
  readonly event: NormalizedEvent
  /** Of what came, in lower-case hex. */
  readonly bodySha256: string
  readonly removed: RemovedBody
}

export type Incoming = RecordedDelivery | ManualAct

/** The answer to one delivery: committed, and visible to every query that starts after it. */
export interface Receipt {
  /** Null where the body holds no usable id. */
  readonly id: string | null
  readonly disposition: Disposition
}
