import { BotApiError } from './telegram-errors.js'

type Update = Readonly<Record<string, unknown>> & { readonly update_id: number }

export interface Webhook {
  readonly url: string
  readonly secret: string | undefined
}

/** What happened, until somebody has taken note of it: by asking for what came after, or by answering 2xx. */
export interface UpdatesQueue {
  emit(update: Readonly<Record<string, unknown>>): void
  /** Not confirmed yet, oldest first. */
  waiting(): readonly Update[]
  /** Held open until there is one; another poll ends it. */
  poll(asked: PollOptions): Promise<readonly Update[]>
  /** Whether a poll is held open. */
  isPolled(): boolean
  setWebhook(webhook: Webhook | null, allowed: readonly string[] | undefined): void
  webhook(): Webhook | null
  /** As `getWebhookInfo` tells it. */
  webhookInfo(): Readonly<Record<string, unknown>>
  close(): void
}

export interface PollOptions {
  readonly offset: number
  readonly limit: number
  readonly timeoutSeconds: number
  readonly allowed: readonly string[] | undefined
}

const FIRST_UPDATE_ID = 900_001
/** Telegram waits longer before it delivers again; tests don't have to. */
const DELIVER_AGAIN_AFTER_MS = 50

export function createUpdatesQueue(): UpdatesQueue {
  let waiting: readonly Update[] = []
  let nextId = FIRST_UPDATE_ID
  let allowedTypes: readonly string[] | undefined
  let webhook: Webhook | null = null
  let isClosed = false
  let wake: () => void = () => {}
  let terminate: (() => void) | null = null
  let isDelivering = false
  let failed: { readonly last_error_date: number; readonly last_error_message: string } | null = null

  async function deliver(): Promise<void> {
    if (isDelivering) return
    isDelivering = true
    while (webhook !== null && waiting[0] !== undefined && !isClosed) {
      const [update] = waiting
      const failure = await post(webhook, update)
      if (failure === null) {
        waiting = waiting.filter((one) => one !== update)
        continue
      }
      failed = { last_error_date: Math.floor(Date.now() / 1_000), last_error_message: failure }
      await new Promise((resolve) => setTimeout(resolve, DELIVER_AGAIN_AFTER_MS))
    }
    isDelivering = false
  }

  return {
    emit(update) {
      const type = Object.keys(update)[0] ?? ''
      if (allowedTypes !== undefined && !allowedTypes.includes(type)) return
      waiting = [...waiting, { update_id: nextId, ...update }]
      nextId += 1
      wake()
      void deliver()
    },
    waiting: () => waiting,
    async poll({ offset, limit, timeoutSeconds, allowed }) {
      if (webhook !== null) {
        throw new BotApiError(409, "Conflict: can't use getUpdates method while webhook is active")
      }
      if (allowed !== undefined) allowedTypes = allowed
      terminate?.()
      waiting = waiting.filter(({ update_id: id }) => id >= offset)
      if (waiting.length === 0) {
        await new Promise<void>((resolve, reject) => {
          const timer = setTimeout(resolve, timeoutSeconds * 1_000)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
          terminate = () => {
            clearTimeout(timer)
            reject(new BotApiError(409, 'Conflict: terminated by other getUpdates request'))
          }
        })
      }
      terminate = null
      return waiting.slice(0, limit)
    },
    isPolled: () => terminate !== null,
    setWebhook(next, allowed) {
      webhook = next
      allowedTypes = allowed ?? allowedTypes
      void deliver()
    },
    webhook: () => webhook,
    webhookInfo: () => ({
      url: webhook?.url ?? '',
      has_custom_certificate: false,
      pending_update_count: waiting.length,
      ...(webhook === null ? {} : failed),
      ...(allowedTypes === undefined ? {} : { allowed_updates: allowedTypes }),
    }),
    close() {
      isClosed = true
      wake()
    },
  }
}

/** Why it could not be delivered; null: it was. */
async function post({ url, secret }: Webhook, update: Update): Promise<string | null> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      body: JSON.stringify(update),
      headers: {
        'content-type': 'application/json',
        connection: 'close',
        ...(secret === undefined ? {} : { 'x-telegram-bot-api-secret-token': secret }),
      },
    })
    await answer.arrayBuffer()
    return answer.ok ? null : `Wrong response from the webhook: ${answer.status} ${answer.statusText}`
  } catch {
    return 'Connection refused'
  }
}
