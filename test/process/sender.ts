import { setTimeout as wait } from 'node:timers/promises'
import { send } from '../faults/patient-sender.js'
import type { SentEvent } from './load.js'
import type { ServedDaemon } from './served.js'

const CONNECTIONS = 8
const FIRST_WAIT_MS = 10
const LONGEST_WAIT_MS = 320

export interface Sender {
  /** How many deliveries were answered 200. */
  readonly acknowledged: () => number
  /** How many were answered otherwise, or not at all. */
  readonly failed: () => number
  /** Resolves once each was acknowledged. */
  readonly done: Promise<unknown>
}

/** Sends as the provider does: whatever is not acknowledged comes again, after a while that grows. */
export function startSender(daemon: ServedDaemon, deliveries: readonly SentEvent[]): Sender {
  let acknowledged = 0
  let failed = 0
  const waiting = deliveries.values()

  async function sendUntilTaken(event: SentEvent): Promise<void> {
    let pause = FIRST_WAIT_MS
    while ((await send(daemon, event))?.status !== 200) {
      failed += 1
      await wait(pause)
      pause = Math.min(2 * pause, LONGEST_WAIT_MS)
    }
    acknowledged += 1
  }

  async function connection(): Promise<void> {
    for (const event of waiting) await sendUntilTaken(event)
  }

  const done = Promise.all(Array.from({ length: CONNECTIONS }, connection))
  return { acknowledged: () => acknowledged, failed: () => failed, done }
}
