import { BotApiError } from './telegram-errors.js'

type Update = Readonly<Record<string, unknown>> & { readonly update_id: number }

/** What happened, until somebody has taken note of it by asking for what came after. */
export interface UpdatesQueue {
  emit(update: Readonly<Record<string, unknown>>): void
  /** Not confirmed yet, oldest first. */
  waiting(): readonly Update[]
  /** Held open until there is one; another poll ends it. */
  poll(asked: PollOptions): Promise<readonly Update[]>
  /** Whether a poll is held open. */
  isPolled(): boolean
  /** Another program has the updates delivered: every poll is refused from now on. */
  setWebhook(): void
  deleteWebhook(): void
  close(): void
}

export interface PollOptions {
  readonly offset: number
  readonly limit: number
  readonly timeoutSeconds: number
  readonly allowed: readonly string[] | undefined
}

const FIRST_UPDATE_ID = 900_001

export function createUpdatesQueue(): UpdatesQueue {
  let waiting: readonly Update[] = []
  let nextId = FIRST_UPDATE_ID
  let allowedTypes: readonly string[] | undefined
  let hasWebhook = false
  let wake: () => void = () => {}
  let terminate: ((by: string) => void) | null = null

  return {
    emit(update) {
      const type = Object.keys(update)[0] ?? ''
      if (allowedTypes !== undefined && !allowedTypes.includes(type)) return
      waiting = [...waiting, { update_id: nextId, ...update }]
      nextId += 1
      wake()
    },
    waiting: () => waiting,
    async poll({ offset, limit, timeoutSeconds, allowed }) {
      if (hasWebhook) {
        throw new BotApiError(409, "Conflict: can't use getUpdates method while webhook is active")
      }
      if (allowed !== undefined) allowedTypes = allowed
      terminate?.('other getUpdates')
      waiting = waiting.filter(({ update_id: id }) => id >= offset)
      if (waiting.length === 0) {
        await new Promise<void>((resolve, reject) => {
          const timer = setTimeout(resolve, timeoutSeconds * 1_000)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
          terminate = (by) => {
            clearTimeout(timer)
            reject(new BotApiError(409, `Conflict: terminated by ${by} request`))
          }
        })
      }
      terminate = null
      return waiting.slice(0, limit)
    },
    isPolled: () => terminate !== null,
    setWebhook() {
      hasWebhook = true
      terminate?.('setWebhook')
    },
    deleteWebhook() {
      hasWebhook = false
    },
    close: () => wake(),
  }
}
