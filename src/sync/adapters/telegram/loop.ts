import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type BackOff, backOffMs } from '../../back-off.js'
import { ActionRequiredError, isOutage, RetryableError } from '../../platform-errors.js'
import type { Reception } from './reception.js'

const BACK_OFF: BackOff = { first: 1_000, most: 60_000 }
/** A call that hangs is not waited for to its end. */
const STOP_WITHIN_MS = 3_000
/** Between tries of what somebody has to do something about first. */
const AFTER_REFUSAL_MS = 15 * 60_000

export interface Loop {
  start(): void
  /** Begins nothing any more, and resolves once what is under way has ended, or hangs. */
  stop(): Promise<void>
}

/** How long to wait after the nth failure in a row, in milliseconds. */
export type WaitAfter = (error: unknown, failures: number) => number

export interface LoopDeps {
  /** Told to stop by the signal; `again`: there is more to do. */
  readonly step: (signal: AbortSignal) => Promise<'again' | 'done'>
  /** Told how each step ended. */
  readonly reception: Pick<Reception, 'went' | 'failed'>
  readonly waitAfter: WaitAfter
  readonly log: Logger
}

/** Repeats a step in the background. After a failure it waits, longer each time, and says so once. */
export function createLoop({ step, reception, waitAfter, log }: LoopDeps): Loop {
  const stopping = new AbortController()
  const { signal } = stopping
  let running: Promise<void> = Promise.resolve()

  async function run(): Promise<void> {
    let failures = 0
    let isTold = false
    while (!signal.aborted) {
      try {
        const outcome = await step(signal)
        reception.went()
        if (failures > 0) log[isTold ? 'info' : 'debug']('Telegram updates are received again')
        failures = 0
        isTold = false
        if (outcome === 'done') return
      } catch (error) {
        if (signal.aborted) return
        failures += 1
        reception.failed(error)
        if (error instanceof ActionRequiredError) {
          isTold = true
          log.error(reasonOf(error), 'Telegram updates are refused')
        } else if (isOutage(error)) {
          // An outage has a warning of its own once it has lasted.
          if (failures === 1) log.debug(reasonOf(error), 'Telegram updates are not received now')
        } else if (!isTold) {
          isTold = true
          log.warn(reasonOf(error), 'Telegram updates are not received now')
        }
        await pause(waitAfter(error, failures), signal)
      }
    }
  }

  return {
    start() {
      running = run()
    },
    async stop() {
      stopping.abort()
      const ended = new AbortController()
      await Promise.race([running, pause(STOP_WITHIN_MS, ended.signal)])
      ended.abort()
    },
  }
}

/**
 * Never before what the error says; otherwise as the back-off has it.
 * @param clock epoch milliseconds
 * @param random from 0 up to 1
 */
export function createWaitAfter(clock: () => number, random: () => number): WaitAfter {
  return (error, failures) => {
    if (error instanceof ActionRequiredError) return AFTER_REFUSAL_MS
    const told = error instanceof RetryableError ? (error.notBefore ?? 0) - clock() : 0
    return Math.max(told, backOffMs(failures, BACK_OFF, random()))
  }
}

/** Ends early, and all the same, once the signal says so. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

/** Of a bug all there is. */
function reasonOf(error: unknown): Record<string, unknown> {
  const isExpected = error instanceof ActionRequiredError || error instanceof RetryableError
  return isExpected ? { reason: error.message } : { err: error }
}
