import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { Incoming, ManualAct } from '../ingest/delivery.js'
import type { ApplyPlan } from '../recompute/run.js'
import type { DeliveryInput } from '../store/events.js'
import type { Writer } from './writer.js'

/** The calls that a thread makes as they are. The other two hand over bytes, and report their progress. */
export const PLAIN_CALLS = [
  'refreshDue',
  'canWrite',
  'writeSync',
  'applyErasureList',
  'finishErasures',
  'dropBodies',
  'saveKeyUses',
] as const satisfies readonly (keyof Writer)[]
export type PlainCall = (typeof PLAIN_CALLS)[number]

export type ThreadCall =
  | { readonly call: PlainCall; readonly args: readonly unknown[] }
  | { readonly call: 'writeBatch'; readonly batch: PackedBatch }
  | { readonly call: 'recompute'; readonly plan: ApplyPlan }
  /** The answer to `progress`. */
  | { readonly call: 'proceed'; readonly isStopping: boolean }
  /** Answered when the thread ends. */
  | { readonly call: 'close' }

/** Requests to the writer thread. `now` (epoch milliseconds) is its only clock. */
export type ThreadRequest = ThreadCall & { readonly id: number; readonly now: number }

export type ThreadResponse =
  | { readonly id: number; readonly kind: 'done'; readonly result: unknown }
  | { readonly id: number; readonly kind: 'failed'; readonly error: PackedError }
  /** Recomputing waits for `proceed`. */
  | { readonly id: number; readonly kind: 'progress'; readonly reached: number; readonly total: number }

/** A batch with all its bodies in one buffer, which is transferred instead of copied. */
export interface PackedBatch {
  readonly items: readonly (PackedDelivery | ManualAct)[]
  readonly bytes: Uint8Array<ArrayBuffer>
}

interface PackedDelivery extends Omit<DeliveryInput, 'body'> {
  readonly bodyBytes: number
}

export function packBatch(deliveries: readonly Incoming[]): PackedBatch {
  const bodies = deliveries.flatMap((one) => ('undated' in one ? [] : [one.body]))
  const bytes = new Uint8Array(bodies.reduce((total, { byteLength }) => total + byteLength, 0))
  let end = 0
  const items = deliveries.map((one) => {
    if ('undated' in one) return one
    const { body, ...rest } = one
    bytes.set(body, end)
    end += body.byteLength
    return { ...rest, bodyBytes: body.byteLength }
  })
  return { items, bytes }
}

export function unpackBatch({ items, bytes }: PackedBatch): Incoming[] {
  let end = 0
  return items.map((one) => {
    if ('undated' in one) return one
    const { bodyBytes, ...rest } = one
    const body = Buffer.from(bytes.buffer, end, bodyBytes)
    end += bodyBytes
    return { ...rest, body }
  })
}

/** The parts of an error that a copy between threads would lose: its class and its code. */
export interface PackedError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code: unknown
  readonly isExpected: boolean
}

export function packError(error: unknown): PackedError {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return { name, message, stack, code, isExpected: isLatchkeyError(error) }
}

export function unpackError({ name, message, stack, code, isExpected }: PackedError): Error {
  if (isExpected) return new LatchkeyError(code as LatchkeyError['code'], message)
  return Object.assign(new Error(message), { name, code, ...(stack === undefined ? {} : { stack }) })
}
