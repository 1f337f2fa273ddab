/* Real time, for worlds whose daemons are processes: what takes virtual hours is awaited, and asked for again and again. */

import { setTimeout as wait } from 'node:timers/promises'
import type { Time } from './time.js'

/** What is awaited comes much sooner, even where another daemon first takes over from one that was killed. */
const PATIENCE_MS = 90_000
const LONGEST_MS = 4_000
/** As many times faster as a story goes on here. */
const HASTE = 10
const LOOK_AGAIN_MS = 250

let begunAt = performance.now()
const elapsed = (): number => Math.round(performance.now() - begunAt)
const lasting = (ms: number): number => Math.min(ms / HASTE, LONGEST_MS)

async function until<Value>(what: string, promise: Promise<Value>): Promise<Value> {
  const ending = new AbortController()
  const late = wait(PATIENCE_MS, null, { signal: ending.signal }).then(() => {
    throw new Error(`${what} has not ended within ${PATIENCE_MS} ms`)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    late.catch(() => {})
    ending.abort()
  }
}

export const realTime: Time = {
  elapsed,
  wallTime: Date.now,
  restart() {
    begunAt = performance.now()
  },
  lasting,
  times: () => 1,
  pass: (ms) => wait(Math.min(lasting(ms), 1_000)),
  until,
  async untilGoingOn(_, steps) {
    await Promise.race([steps, wait(LONGEST_MS)])
  },
  async untilHolds(check) {
    const end = elapsed() + PATIENCE_MS
    for (;;) {
      try {
        return await check()
      } catch (error) {
        if (elapsed() > end) throw error
        await wait(LOOK_AGAIN_MS)
      }
    }
  },
}
