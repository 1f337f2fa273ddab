import type { Logger } from 'pino'
import type { Message, MessageOutcome } from '../store/messages.js'
import type { WriteSync } from '../store/sync-writes.js'
import { originOf, type WebhookAddress } from './adapters/webhook/address.js'
import { messageBody, messageId } from './adapters/webhook/change-message.js'
import { judgeAnswer } from './adapters/webhook/judge-answer.js'
import { type Answer, postMessage } from './adapters/webhook/post-message.js'
import { createGathering } from './gathering.js'
import type { Reach } from './outages.js'

export interface SendMessageDeps {
  readonly writeSync: WriteSync
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  /** Gives up what is under way. */
  readonly signal: AbortSignal
  readonly reach: Reach
  readonly log: Logger
}

interface Told extends Pick<Message, 'change'> {
  readonly origin: string
  readonly id: string
}

/**
 * Makes one attempt, and resolves once what became of it is written down: with until when the receiver asked to be
 * sent nothing (epoch milliseconds), or null.
 */
export type SendMessage = (to: WebhookAddress, message: Message) => Promise<number | null>

export function createSendMessage(deps: SendMessageDeps): SendMessage {
  const { writeSync, clock, random, signal, reach, log } = deps
  const settle = createGathering<MessageOutcome>((outcomes) => writeSync('settleMessages', outcomes))

  function tell({ result }: MessageOutcome, { origin, id, change }: Told): void {
    const { environment, customerId, productId, cause } = change
    const fields = { origin, id, environment, customerId, productId, cause }
    if (result.kind === 'delivered') {
      log.debug(fields, 'webhook delivered')
    } else if (result.kind === 'parked') {
      log.error(
        { ...fields, reason: result.reason, why: result.error },
        'webhook parked, and not sent again: see `latchkey sync status`',
      )
    } else {
      log.debug({ ...fields, why: result.error }, 'webhook delivery failed; retrying for up to 3 days')
    }
    // Gone is an answer to this message; anything else may meet every message.
    if (result.kind === 'delivered' || (result.kind === 'parked' && result.reason === 'gone')) {
      reach.answered()
    } else {
      reach.failed(result.error)
    }
  }

  return async (to, message) => {
    const { cursor, environment, customerId } = message.change
    const sent = { id: messageId(message), body: messageBody(message) }
    let answer: Answer
    try {
      answer = await postMessage(to, sent, clock(), signal)
    } catch (error) {
      // Nothing is known of it, and so it stands as it did.
      if (signal.aborted) return null
      throw error
    }
    const { result, closedUntil } = judgeAnswer(answer, message, clock(), random())
    const outcome = { cursor, environment, customerId, result }
    await settle(outcome)
    tell(outcome, { origin: originOf(to), id: sent.id, change: message.change })
    return closedUntil
  }
}
