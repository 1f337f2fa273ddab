import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from 'grammy'
import type { WebhookInfo } from 'grammy/types'
import { type BackOff, backOffMs } from '../limits.js'
import { ActionRequiredError, type CheckFinding, failedCheck, isOutage, RetryableError } from '../platform.js'
import { LONG_POLL_SECONDS, Refusal } from './calls.js'
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
/** An update that fails this often is skipped, so that it does not block the others. */
const MAX_TRIES = 3
const MAX_UPDATES_AT_ONCE = 100
/** Telegram reports the last failed delivery for ever, but retries far sooner than this. */
const FAILURE_LASTS_SECONDS = 3_600

/** The `about` of a finding about updates. */
export const UPDATES = 'telegram:updates'

export type Receiver = ReturnType<typeof createReceiver>

/** Receives the bot's updates, which all joins and deep links need. */
export function createReceiver(context: TelegramContext, handleUpdate: HandleUpdate) {
  const { call, updates, receptionChanged, clock, random, log } = context
  const stopping = new AbortController()
  const { signal } = stopping
  let running: Promise<void> = Promise.resolve()
  /** Since when updates arrive as configured; null: Telegram has not confirmed it yet. */
  let agreedAt: number | null = null
  /** The problem that stops updates; null: none. */
  let failure: unknown = null
  let failedAt = 0
  /** The number of the next update to fetch. */
  let next = 0

  function become(now: unknown): void {
    const before = failure
    failure = now
    if (isForSomebody(before) !== isForSomebody(now)) receptionChanged()
  }

  /** Not before the time in the error; apart from that, by back-off. */
  function waitAfter(error: unknown, failures: number): Promise<void> {
    if (error instanceof ActionRequiredError) return pause(AFTER_REFUSAL_MS, signal)
    const asked = error instanceof RetryableError ? (error.notBefore ?? 0) - clock() : 0
    return pause(Math.max(asked, backOffMs(failures, BACK_OFF, random())), signal)
  }

  async function run(): Promise<void> {
    let failures = 0
    /** The level at which the current failure was logged; null: updates arrive. */
    let logged: 'error' | 'warn' | 'debug' | null = null
    while (!signal.aborted) {
      try {
        await (updates === null ? poll() : haveDelivered(updates))
        if (!isConflict(failure) || clock() >= failedAt + CONFLICT_LASTS_MS) become(null)
        if (logged !== null) log[logged === 'debug' ? 'debug' : 'info']('Telegram updates are received again')
        failures = 0
        logged = null
        if (updates !== null) return
      } catch (error) {
        if (signal.aborted) return
        failures += 1
        failedAt = clock()
        become(error)
        // A lasting outage is logged separately.
        const usual = isOutage(error) ? 'debug' : 'warn'
        const level = error instanceof ActionRequiredError ? 'error' : usual
        if (level === 'error' || logged === null || (level === 'warn' && logged === 'debug')) {
          log[level](reasonOf(error), 'Telegram updates do not arrive at the moment')
          logged = level
        }
        await waitAfter(error, failures)
      }
    }
  }

  async function haveDelivered({ url, secret }: NonNullable<typeof updates>): Promise<void> {
    await call((api) => api.setWebhook(url, { secret_token: secret, allowed_updates: HANDLED_UPDATES }))
    agreedAt = clock()
  }

  /**
   * Telegram keeps an update until a poll asks for a higher number, which happens only after it was handled: an update
   * in progress at a crash comes again.
   */
  async function poll(): Promise<void> {
    if (agreedAt === null) {
      // Telegram refuses every poll while a webhook is set.
      await call((api) => api.deleteWebhook())
      agreedAt = clock()
    }
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
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        return await handleUpdate(update)
      } catch (error) {
        if (tries === MAX_TRIES) {
          log.error(
            { err: error, updateId: update.update_id },
            'skipped a Telegram update that failed repeatedly',
          )
          return
        }
        await waitAfter(error, tries)
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
    /**
     * Asks Telegram how updates are delivered.
     * @throws as `Call` does
     */
    async check(): Promise<CheckFinding> {
      const info = await call((api) => api.getWebhookInfo())
      const finding = (message: string, isFine = false) => ({ about: UPDATES, isFine, message })
      // Until our own setting is confirmed, Telegram's may be that of an earlier process: not a finding.
      const problem =
        agreedAt === null
          ? null
          : updates === null
            ? problemOfFetching(info, failure)
            : problemOfDelivery(info, updates.url, agreedAt, clock())
      if (problem !== null) return finding(problem)
      if (failure instanceof Refusal && updates !== null) {
        return finding(
          `Telegram refuses the settings in sync.telegram.updates (${failure.description}): correct them.`,
        )
      }
      if (failure !== null) return failedCheck(UPDATES, failure)
      return finding(`Updates are ${updates === null ? 'fetched' : 'delivered'}.`, true)
    },
  }
}

/** Another program receives the updates of this bot. */
function isConflict(error: unknown): boolean {
  return error instanceof RetryableError && error.code === 'telegram_conflict'
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

function problemOfFetching({ url = '' }: WebhookInfo, failure: unknown): string | null {
  if (url !== '') {
    return 'Another program receives the updates of this bot by webhook: stop it and restart the daemon, or use a separate bot here.'
  }
  if (!isConflict(failure)) return null
  return 'Another program polls the updates of this bot: stop it, or use a separate bot here.'
}

function problemOfDelivery(info: WebhookInfo, ownUrl: string, agreedAt: number, now: number): string | null {
  if (!isSameUrl(info.url ?? '', ownUrl)) {
    return 'Another program has changed the webhook of this bot: stop it and restart the daemon, or use a separate bot here.'
  }
  const { last_error_date: failedAt, last_error_message: reason, pending_update_count: waiting } = info
  const since = Math.max(agreedAt / 1_000, now / 1_000 - FAILURE_LASTS_SECONDS)
  // A success since then has solved the problem.
  if (failedAt === undefined || failedAt < Math.floor(since) || waiting === 0) return null
  return `Telegram can't deliver updates (${reason}): check that your proxy publishes POST /platforms/telegram/updates under sync.telegram.updates.url, and passes the header X-Telegram-Bot-Api-Secret-Token on unchanged.`
}

/** Compares parsed URLs: Telegram may spell the same one in another way. */
function isSameUrl(one: string, own: string): boolean {
  return URL.canParse(one) && new URL(one).href === new URL(own).href
}
