import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from 'grammy'
import type { WebhookInfo } from 'grammy/types'
import type { Logger } from 'pino'
import { type BackOff, backOffMs } from '../limits.js'
import { ActionRequiredError, type CheckFinding, failedCheck, isOutage, RetryableError } from '../platform.js'
import { type Call, LONG_POLL_SECONDS, Refusal } from './calls.js'
import { HANDLED_UPDATES, type HandleUpdate } from './handle-update.js'

/** Two programs that fetch end each other's polls by turns, and each is served now and then: one good poll proves little. */
const CONFLICT_LASTS_MS = 2 * 60_000

export interface ReceptionDeps {
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** Told when something begins to keep updates out that somebody has to mend, and when it does no more. */
  readonly changed: () => void
}

/** How it goes with receiving updates, as whoever receives them has met it since the start. */
export interface Reception {
  /** Telegram has taken note of how they are to come. */
  agreed(): void
  went(): void
  failed(error: unknown): void
  /** Since when they come as agreed, in epoch milliseconds; null: Telegram has not taken note yet. */
  agreedAt(): number | null
  /** What keeps them out now; null: nothing does. */
  failure(): unknown
}

export function createReception({ clock, changed }: ReceptionDeps): Reception {
  let agreedAt: number | null = null
  let failure: unknown = null
  let failedAt = 0

  function become(next: unknown): void {
    const before = failure
    failure = next
    if (isForSomebody(before) !== isForSomebody(next)) changed()
  }

  return {
    agreed() {
      agreedAt = clock()
    },
    went() {
      if (!isConflict(failure) || clock() >= failedAt + CONFLICT_LASTS_MS) become(null)
    },
    failed(error) {
      failedAt = clock()
      become(error)
    },
    agreedAt: () => agreedAt,
    failure: () => failure,
  }
}

/** Another program receives the updates of this bot. */
export function isConflict(error: unknown): boolean {
  return error instanceof RetryableError && error.code === 'telegram_conflict'
}

function isForSomebody(failure: unknown): boolean {
  return failure instanceof ActionRequiredError || isConflict(failure)
}

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

/** An update that fails this often is left, so that it keeps nobody else's waiting. */
const MAX_TRIES = 3
const MAX_UPDATES_AT_ONCE = 100

export interface UpdatesDeps {
  readonly call: Call
  readonly handleUpdate: HandleUpdate
  readonly reception: Reception
  readonly waitAfter: WaitAfter
  readonly log: Logger
}

/**
 * Fetches updates by long polling, one poll at a time. Telegram keeps an update until one with a higher number is asked
 * for, which happens only once it is handled: one that was under way at a crash comes again.
 */
export function createPolling({ call, handleUpdate, reception, waitAfter, log }: UpdatesDeps): Loop {
  let next = 0

  /** Where a webhook is set, Telegram refuses every poll. */
  async function makeReady(): Promise<void> {
    if (reception.agreedAt() !== null) return
    await call((api) => api.deleteWebhook())
    reception.agreed()
  }

  async function handle(update: { readonly update_id: number }, signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        return await handleUpdate(update)
      } catch (error) {
        if (tries === MAX_TRIES) {
          log.error({ err: error, updateId: update.update_id }, 'a Telegram update was left')
          return
        }
        await pause(waitAfter(error, tries), signal)
      }
    }
  }

  async function step(signal: AbortSignal): Promise<'again'> {
    await makeReady()
    const asked = {
      offset: next,
      limit: MAX_UPDATES_AT_ONCE,
      timeout: LONG_POLL_SECONDS,
      allowed_updates: HANDLED_UPDATES,
    }
    // The library's type of a signal is another package's, which Node's own satisfies.
    const aborted = signal as Parameters<Api['getUpdates']>[1]
    const updates = await call((api) => api.getUpdates(asked, aborted), { isLongPoll: true })
    for (const update of updates) {
      await handle(update, signal)
      // Told to stop meanwhile, it may not be handled: then no poll follows that would say so.
      next = update.update_id + 1
    }
    return 'again'
  }

  return createLoop({ step, reception, waitAfter, log })
}

export interface WebhookDeps extends Omit<UpdatesDeps, 'handleUpdate'> {
  readonly updates: { readonly url: string; readonly secret: string }
}

/** Has updates delivered, from the start on: Telegram is told where, until it has taken note. */
export function createWebhook({ call, updates, reception, waitAfter, log }: WebhookDeps): Loop {
  const { url, secret } = updates
  async function step(): Promise<'done'> {
    await call((api) => api.setWebhook(url, { secret_token: secret, allowed_updates: HANDLED_UPDATES }))
    reception.agreed()
    return 'done'
  }
  return createLoop({ step, reception, waitAfter, log })
}

/** What such a finding is about. */
export const UPDATES = 'telegram:updates'

/** Telegram tells of the last failed delivery for ever; it tries again far sooner than this. */
const FAILURE_LASTS_SECONDS = 3_600

export interface CheckUpdatesDeps {
  readonly call: Call
  readonly reception: Pick<Reception, 'agreedAt' | 'failure'>
  /** Where updates are delivered; null: they are fetched. */
  readonly webhookUrl: string | null
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/**
 * Asks Telegram how the updates of the bot come, on which every join and every deep link depends.
 * @throws what `Call` does
 */
export type CheckUpdates = () => Promise<CheckFinding>

export function createCheckUpdates({ call, reception, webhookUrl, clock }: CheckUpdatesDeps): CheckUpdates {
  const isDelivered = webhookUrl !== null
  const findProblem = isDelivered ? problemOfDelivery(webhookUrl) : problemOfFetching

  return async () => {
    const info = await call((api) => api.getWebhookInfo())
    const [failure, agreedAt] = [reception.failure(), reception.agreedAt()]
    // Until it is agreed on how they are to come, what an earlier process or program agreed on is no finding.
    const problem = agreedAt === null ? null : findProblem(info, { failure, agreedAt, now: clock() })
    if (problem !== null) return { about: UPDATES, isFine: false, message: problem }
    if (failure instanceof Refusal && isDelivered) return refused(failure)
    if (failure !== null) return failedCheck(UPDATES, failure)
    return { about: UPDATES, isFine: true, message: `Updates are ${isDelivered ? 'delivered' : 'fetched'}.` }
  }
}

interface Standing {
  readonly failure: unknown
  /** Epoch milliseconds. */
  readonly agreedAt: number
  /** Epoch milliseconds. */
  readonly now: number
}

type FindProblem = (info: WebhookInfo, standing: Standing) => string | null

const problemOfFetching: FindProblem = ({ url = '' }, { failure }) => {
  if (url !== '') {
    return 'Another program has the updates of this bot delivered: stop it and start the daemon anew, or give this one a bot of its own.'
  }
  if (!isConflict(failure)) return null
  return 'Another program fetches the updates of this bot: stop it, or give this one a bot of its own.'
}

function problemOfDelivery(ownUrl: string): FindProblem {
  return (info, { agreedAt, now }) => {
    if (!isSameUrl(info.url ?? '', ownUrl)) {
      return 'Another program has changed where the updates of this bot are delivered: stop it and start the daemon anew, or give this one a bot of its own.'
    }
    const { last_error_date: failedAt, last_error_message: reason, pending_update_count: waiting } = info
    const since = Math.max(agreedAt / 1_000, now / 1_000 - FAILURE_LASTS_SECONDS)
    // What has been delivered since is no problem any more.
    if (failedAt === undefined || failedAt < Math.floor(since) || waiting === 0) return null
    return `Telegram can't deliver updates (${reason}): see that your proxy publishes POST /platforms/telegram/updates under sync.telegram.updates.url, and leaves the header X-Telegram-Bot-Api-Secret-Token as it is.`
  }
}

/** Telegram tells an address in its own spelling. */
function isSameUrl(told: string, own: string): boolean {
  return URL.canParse(told) && new URL(told).href === new URL(own).href
}

function refused({ description }: Refusal): CheckFinding {
  const message = `Telegram refuses what sync.telegram.updates asks for (${description}): mend it.`
  return { about: UPDATES, isFine: false, message }
}
