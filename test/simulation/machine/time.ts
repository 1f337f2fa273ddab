/* The time in which worlds are played: virtual, unless real time was chosen before the first of them. */

import { realTime } from './real-time.js'
import * as virtual from './virtual-time.js'

export interface Time {
  /** Milliseconds since the world began. No process can set this clock. */
  elapsed(): number
  /** What a right clock on the wall shows, in epoch milliseconds. */
  wallTime(): number
  /** Begins at 0, for another world. */
  restart(): void
  /** For how long something goes on that lasts so long in virtual time. */
  lasting(ms: number): number
  /** How often something is asked that was to be asked so often: where each time takes long, once. */
  times(count: number): number
  /** Has time pass, with everything that happens in it. */
  pass(ms: number): Promise<void>
  /** Has time pass until a promise is settled. @param withinMs of virtual time */
  until<Value>(what: string, promise: Promise<Value>, withinMs: number): Promise<Value>
  /** Has time pass until what the steps of a moment have begun may be left to go on by itself. */
  untilGoingOn(what: string, steps: Promise<unknown>): Promise<void>
  /** Resolves once a check holds, which may need another look where time is real; rejects with why it does not. */
  untilHolds(check: () => Promise<void>): Promise<void>
}

const MINUTE_MS = 60_000
/** So long after each moment, what has begun goes on by itself. */
const AFTERMATH_MS = 5_000

const virtualTime: Time = {
  elapsed: virtual.elapsed,
  wallTime: virtual.wallTime,
  restart: virtual.restartTime,
  lasting: (ms) => ms,
  times: (count) => count,
  pass: virtual.pass,
  until: virtual.until,
  async untilGoingOn(what, steps) {
    await virtual.until(what, steps, 30 * MINUTE_MS)
    await virtual.pass(AFTERMATH_MS)
  },
  untilHolds: (check) => check(),
}

let time = virtualTime

export function chooseRealTime(): void {
  time = realTime
}

export const elapsed: Time['elapsed'] = () => time.elapsed()
export const wallTime: Time['wallTime'] = () => time.wallTime()
export const restartTime: Time['restart'] = () => time.restart()
export const lasting: Time['lasting'] = (ms) => time.lasting(ms)
export const times: Time['times'] = (count) => time.times(count)
export const pass: Time['pass'] = (ms) => time.pass(ms)
export const until: Time['until'] = (what, promise, withinMs) => time.until(what, promise, withinMs)
export const untilGoingOn: Time['untilGoingOn'] = (what, steps) => time.untilGoingOn(what, steps)
export const untilHolds: Time['untilHolds'] = (check) => time.untilHolds(check)
