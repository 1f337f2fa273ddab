import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from 'grammy'
import { isLatchkeyError } from '../../errors.js'
import { isStoreBusy } from '../../store/engine.js'
import { type BackOff, backOffMs } from '../limits.js'
import { ActionRequiredError, type CheckFinding, failedCheck, isOutage, RetryableError } from '../platform.js'
import { LONG_POLL_SECONDS } from './calls.js'
import type { TelegramContext } from './context.js'
import { HANDLED_UPDATES, type HandleUpdate } from './handle-update.js'

const BACK_OFF: BackOff = { first: 1_000, most: 60_000 }
/** A stop waits this long for a call in flight. */
const STOP_WITHIN_MS = 3_000
/** The wait between attempts while somebody has to fix a problem. */
const AFTER_REFUSAL_MS = 15 * 60_000
/**
 * Two programs that poll end each other's polls in turn, and both succeed now and then: one good poll proves little.
 */
const CONFLICT_LASTS_MS = 2 * 60_000
/** An update that fails this often by itself is skipped, so that it does not block the others. */
const MAX_TRIES = 3
const MAX_UPDATES_AT_ONCE = 100

/** The `about` of the finding about updates. */
const UPDATES = 'telegram:updates'

export type Receiver = ReturnType<typeof createReceiver>

/** Polls for the bot's updates, which all joins and deep links need. */
export function createReceiver(context: TelegramContext, handleUpdate: HandleUpdate) {
  const { call, recheck, isLeader, clock, random, log } = context
  const stopping = new AbortController()
  const { signal } = stopping
  /** Also before the stop, for a process that stood still, or lost the database, while another took over. */
  const isOver = () => signal.aborted || !isLeader()
  let running: Promise<void> = Promise.resolve()
  let isBegun = false
  /** The problem that stops updates; null: none. */
  let failure: unknown = null
  let failedAt = 0
  /** The number of the next update to fetch. */
  let next = 0

  function become(now: unknown): void {
    const before = failure
    failure = now
    if (isForSomebody(before) !== isForSomebody(now)) recheck()
  }

  /** Not before the time in the error; apart from that, by back-off. */
  function waitAfter(error: unknown, failures: number): Promise<void> {
    if (error instanceof ActionRequiredError) return pause(AFTER_REFUSAL_MS, signal)
    const asked = error instanceof RetryableError ? (error.notBefore ?? 0) - clock() : 0
    return pause(Math.max(asked, backOffMs(failures, BACK_OFF, random())), signal)
  }

  async function run(): Promise<void> {
    let failures = 0
    /** The levels at which the current failures were logged. A lasting outage is logged separately. */
    const logged = new Set<'error' | 'warn' | 'debug'>()
    while (!isOver()) {
      try {
        await poll()
        if (!isConflict(failure) || clock() >= failedAt + CONFLICT_LASTS_MS) become(null)
        if (failures > 0) {
          const level = logged.has('warn') || logged.has('error') ? 'info' : 'debug'
          log[level]('Telegram updates are received again')
        }
        failures = 0
        logged.clear()
      } catch (error) {
        if (isOver()) return
        failures += 1
        failedAt = clock()
        become(error)
        const level = error instanceof ActionRequiredError ? 'error' : isOutage(error) ? 'debug' : 'warn'
        if (!logged.has(level)) log[level](reasonOf(error), 'Telegram updates do not arrive at the moment')
        logged.add(level)
        await waitAfter(error, failures)
      }
    }
  }

  /**
   * Telegram keeps an update until a poll asks for a higher number, which happens only after it was handled: an update
   * in progress at a crash comes again.
   */
  async function poll(): Promise<void> {
    // Telegram refuses every poll while a webhook is set.
    if (!isBegun) await call((api) => api.deleteWebhook())
    isBegun = true
    const asked = {
      offset: next,
      limit: MAX_UPDATES_AT_ONCE,
      timeout: LONG_POLL_SECONDS,
      allowed_updates: HANDLED_UPDATES,
    }
    // The library takes its signal type from another package; Node's own satisfies it.
    const aborted = signal as Parameters<Api['getUpdates']>[1]
    for (const update of await call((api) => api.getUpdates(asked, aborted), { isLongPoll: true })) {
      await handle(update)
      // After a stop the update may be unhandled: no later poll may confirm it.
      next = update.update_id + 1
    }
  }

  async function handle(update: { readonly update_id: number }): Promise<void> {
    let tries = 0
    for (let failures = 1; !isOver(); failures += 1) {
      try {
        return await handleUpdate(update)
      } catch (error) {
        const fields = { err: error, updateId: update.update_id }
        if (isWaitForStore(error)) {
          if (failures === 1) log.warn(fields, 'a Telegram update waits for the store')
        } else if (!isLimit(error)) tries += 1
        if (tries === MAX_TRIES) {
          log.error(fields, 'skipped a Telegram update that failed repeatedly')
          return
        }
        await waitAfter(error, failures)
      }
    }
  }

  return {
    /** Runs in the background. Waits longer after each failure, and logs a series of failures once. */
    start(): void {
      running = run()
    },
    /** Starts nothing more, and resolves once the work in progress has ended, or hangs too long. */
    async stop(): Promise<void> {
      stopping.abort()
      const ended = new AbortController()
      await Promise.race([running, pause(STOP_WITHIN_MS, ended.signal)])
      ended.abort()
    },
    /** Whether updates arrive. The polls themselves have found out. */
    check(): CheckFinding {
      if (isConflict(failure)) {
        const message =
          'Another program receives the updates of this bot: stop it and restart the daemon, or use a separate bot here.'
        return { about: UPDATES, isFine: false, message }
      }
      if (failure !== null) return failedCheck(UPDATES, failure)
      return { about: UPDATES, isFine: true, message: 'Updates are fetched.' }
    },
  }
}

/** Another program receives the updates of this bot. */
function isConflict(error: unknown): boolean {
  return error instanceof RetryableError && error.code === 'telegram_conflict'
}

/** The store can't take it now, nor any other update: skipping this one would help none of them. */
function isWaitForStore(error: unknown): boolean {
  return isStoreBusy(error) || isLatchkeyError(error, 'not_stored')
}

/** Telegram asks for a wait, which holds for all calls. */
function isLimit(error: unknown): boolean {
  return error instanceof RetryableError && error.code === 'rate_limited'
}

function isForSomebody(failure: unknown): boolean {
  return failure instanceof ActionRequiredError || isConflict(failure)
}

/** Resolves early, without an error, when the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

/** Everything about a bug. */
function reasonOf(error: unknown): Record<string, unknown> {
  const isExpected = error instanceof ActionRequiredError || error instanceof RetryableError
  return isExpected ? { reason: error.message } : { err: error }
}
