import type { Logger } from 'pino'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { Call } from './calls.js'
import type { Message } from './update.js'

const START = /^\/start ([\w-]{1,64})$/

/** What one account may try in a minute; more is neither looked up nor answered. */
const TRIES_PER_MINUTE = 5

export const LINKED = 'Your account is linked.'
/** The same whatever is wrong with a token: whoever guesses learns nothing. */
export const NOT_LINKED = 'This link has been used or has expired: please ask for a new one.'

export interface StartMessageDeps {
  readonly call: Call
  /** Links the account to the customer whom the token was made for; false: it is of no use, or not any more. */
  readonly linkByToken: (token: string, accountId: string) => Promise<boolean>
  readonly log: Logger
}

/** Somebody followed a one-time link to the bot: `/start <token>`, in a chat with the bot alone. */
export function createHandleStartMessage({ call, linkByToken, log }: StartMessageDeps) {
  const limiter = new RateLimiterMemory({ points: TRIES_PER_MINUTE, duration: 60 })

  async function answer(chatId: number, text: string): Promise<void> {
    try {
      await call((api) => api.sendMessage(chatId, text))
    } catch (error) {
      // What was asked for is done; they may have blocked the bot.
      log.info(
        { reason: error instanceof Error ? error.message : '' },
        'a Telegram user could not be answered',
      )
    }
  }

  return async ({ chat, from, text }: Message): Promise<void> => {
    const [, token] = START.exec(text ?? '') ?? []
    if (token === undefined || from === undefined || chat.type !== 'private') return
    // Only people have access.
    if (from.is_bot) return
    const accountId = String(from.id)
    const { consumedPoints } = await limiter.penalty(accountId)
    if (consumedPoints > TRIES_PER_MINUTE) return
    await answer(chat.id, (await linkByToken(token, accountId)) ? LINKED : NOT_LINKED)
  }
}
