import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from 'grammy'
import type { WebhookInfo } from 'grammy/types'
import { type BackOff, backOffMs } from '../limits.js'
import { ActionRequiredError, type CheckFinding, failedCheck, isOutage, RetryableError } from '../platform.js'
import { LONG_POLL_SECONDS, Refusal } from './calls.js'
import type { TelegramContext } from './context.js'
import { HANDLED_UPDATES, type HandleUpdate } from './handle-update.js'

const BACK_OFF: BackOff = { first: 1_000, most: 60_000 }
/** A call that hangs is not waited for to its end. */
const STOP_WITHIN_MS = 3_000
/** Between tries of what somebody has to do something about first. */
const AFTER_REFUSAL_MS = 15 * 60_000
/** Two programs that fetch end each other's polls by turns, and each is served now and then: one good poll proves little. */
const CONFLICT_LASTS_MS = 2 * 60_000
/** An update that fails this often is left, so that it keeps nobody else's waiting. */
const MAX_TRIES = 3
const MAX_UPDATES_AT_ONCE = 100
/** Telegram reports the last failed delivery for ever; it tries again far sooner than this. */
const FAILURE_LASTS_SECONDS = 3_600

/** What a finding about updates is about. */
export const UPDATES = 'telegram:updates'

export type Receiver = ReturnType<typeof createReceiver>

/** Receives the bot's updates, on which every join and every deep link depends. */
export function createReceiver(context: TelegramContext, handleUpdate: HandleUpdate) {
  const { call, updates, receptionChanged, clock, random, log } = context
  const stopping = new AbortController()
  const { signal } = stopping
  let running: Promise<void> = Promise.resolve()
  /** Since when updates come as asked for; null: Telegram has not taken note yet. */
  let agreedAt: number | null = null
  /** What keeps them out now; null: nothing does. */
  let failure: unknown = null
  let failedAt = 0
  /** The number of the next update to fetch. */
  let next = 0

  function become(now: unknown): void {
    const before = failure
    failure = now
    if (isForSomebody(before) !== isForSomebody(now)) receptionChanged()
  }

  /** Never before what the error says; apart from that as the back-off has it. */
  function waitAfter(error: unknown, failures: number): Promise<void> {
    if (error instanceof ActionRequiredError) return pause(AFTER_REFUSAL_MS, signal)
    const asked = error instanceof RetryableError ? (error.notBefore ?? 0) - clock() : 0
    return pause(Math.max(asked, backOffMs(failures, BACK_OFF, random())), signal)
  }

  async function run(): Promise<void> {
    let failures = 0
    /** How the log has it that none are received. */
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
        // An outage has a warning of its own once it has lasted.
        const usual = isOutage(error) ? 'debug' : 'warn'
        const level = error instanceof ActionRequiredError ? 'error' : usual
        if (level === 'error' || logged === null || (level === 'warn' && logged === 'debug')) {
          log[level](reasonOf(error), 'Telegram updates are not received now')
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
   * Telegram keeps an update until one with a higher number is asked for, which happens only once it is handled: one
   * that was under way at a crash comes again.
   */
  async function poll(): Promise<void> {
    if (agreedAt === null) {
      // Where a webhook is set, Telegram refuses every poll.
      await call((api) => api.deleteWebhook())
      agreedAt = clock()
    }
    const asked = {
      offset: next,
      limit: MAX_UPDATES_AT_ONCE,
      timeout: LONG_POLL_SECONDS,
      allowed_updates: HANDLED_UPDATES,
    }
    // The library's type of a signal is another package's, which Node's own satisfies.
    const aborted = signal as Parameters<Api['getUpdates']>[1]
    for (const update of await call((api) => api.getUpdates(asked, aborted), { isLongPoll: true })) {
      await handle(update)
      // Stopped meanwhile, it may not be handled: then no poll follows that would say so.
      next = update.update_id + 1
    }
  }

  async function handle(update: { readonly update_id: number }): Promise<void> {
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        return await handleUpdate(update)
      } catch (error) {
        if (tries === MAX_TRIES) {
          log.error({ err: error, updateId: update.update_id }, 'a Telegram update was left')
          return
        }
        await waitAfter(error, tries)
      }
    }
  }

  return {
    /** In the background. After a failure it waits, longer each time, and logs it once. */
    start(): void {
      running = run()
    },
    /** Begins nothing any more, and resolves once what is under way has ended, or hangs. */
    async stop(): Promise<void> {
      stopping.abort()
      const ended = new AbortController()
      await Promise.race([running, pause(STOP_WITHIN_MS, ended.signal)])
      ended.abort()
    },
    /**
     * Asks Telegram how the updates come.
     * @throws what `Call` does
     */
    async check(): Promise<CheckFinding> {
      const info = await call((api) => api.getWebhookInfo())
      const finding = (message: string, isFine = false) => ({ about: UPDATES, isFine, message })
      // Until it is agreed on how they are to come, what an earlier process or program agreed on is no finding.
      const problem =
        agreedAt === null
          ? null
          : updates === null
            ? problemOfFetching(info, failure)
            : problemOfDelivery(info, updates.url, agreedAt, clock())
      if (problem !== null) return finding(problem)
      if (failure instanceof Refusal && updates !== null) {
        return finding(
          `Telegram refuses what sync.telegram.updates asks for (${failure.description}): mend it.`,
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

/** Ends early, and all the same, once the signal says so. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

/** Of a bug all there is. */
function reasonOf(error: unknown): Record<string, unknown> {
  const isExpected = error instanceof ActionRequiredError || error instanceof RetryableError
  return isExpected ? { reason: error.message } : { err: error }
}

function problemOfFetching({ url = '' }: WebhookInfo, failure: unknown): string | null {
  if (url !== '') {
    return 'Another program has the updates of this bot delivered: stop it and restart the daemon, or give this one a bot of its own.'
  }
  if (!isConflict(failure)) return null
  return 'Another program fetches the updates of this bot: stop it, or give this one a bot of its own.'
}

function problemOfDelivery(info: WebhookInfo, ownUrl: string, agreedAt: number, now: number): string | null {
  if (!isSameUrl(info.url ?? '', ownUrl)) {
    return 'Another program has changed where the updates of this bot are delivered: stop it and restart the daemon, or give this one a bot of its own.'
  }
  const { last_error_date: failedAt, last_error_message: reason, pending_update_count: waiting } = info
  const since = Math.max(agreedAt / 1_000, now / 1_000 - FAILURE_LASTS_SECONDS)
  // What has been delivered since is no problem any more.
  if (failedAt === undefined || failedAt < Math.floor(since) || waiting === 0) return null
  return `Telegram can't deliver updates (${reason}): see that your proxy publishes POST /platforms/telegram/updates under sync.telegram.updates.url, and leaves the header X-Telegram-Bot-Api-Secret-Token as it is.`
}

/** Telegram has its own spelling of an address. */
function isSameUrl(one: string, own: string): boolean {
  return URL.canParse(one) && new URL(one).href === new URL(own).href
}
