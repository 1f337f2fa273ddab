import type { Api } from 'grammy'
import type { Logger } from 'pino'
import { type Call, LONG_POLL_SECONDS } from './calls.js'
import type { HandleUpdate } from './handle-update.js'
import { createLoop, type Loop, pause, type WaitAfter } from './loop.js'
import type { Reception } from './reception.js'
import { HANDLED_UPDATES } from './update.js'

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
