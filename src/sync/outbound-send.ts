import type { Logger } from 'pino'
import type { MessageOutcome } from '../store/message-writes.js'
import type { Message } from '../store/messages.js'
import type { WriteSync } from '../store/sync-writes.js'
import { originOf, type WebhookAddress } from './adapters/webhook/address.js'
import { messageBody, messageId } from './adapters/webhook/change-message.js'
import { judgeAnswer } from './adapters/webhook/judge-answer.js'
import { type Answer, postMessage } from './adapters/webhook/post-message.js'
import { createGathering } from './gathering.js'

export interface SendMessageDeps {
  readonly writeSync: WriteSync
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  /** Gives up what is under way. */
  readonly signal: AbortSignal
  readonly log: Logger
}

/**
 * Makes one attempt, and resolves once what became of it is written down: with until when the receiver asked to be
 * sent nothing (epoch milliseconds), or null.
 */
export type SendMessage = (to: WebhookAddress, message: Message) => Promise<number | null>

export function createSendMessage({ writeSync, clock, random, signal, log }: SendMessageDeps): SendMessage {
  const settle = createGathering<MessageOutcome>((outcomes) => writeSync('settleMessages', outcomes))
  let isRefusing = false

  /** Once when it begins, and once when it ends: an outage has as many failures as there are customers. */
  function tell({ result }: MessageOutcome, origin: string): void {
    if (result.kind === 'retry' && !isRefusing) {
      log.warn(
        { origin, why: result.error },
        'the outbound webhook was not taken: it is tried again, for three days',
      )
    } else if (result.kind === 'delivered' && isRefusing) {
      log.info({ origin }, 'the outbound webhook is taken again')
    }
    isRefusing = result.kind !== 'delivered'
    if (result.kind === 'parked') {
      log.error(
        { origin, reason: result.reason, why: result.error },
        'the outbound webhook gave up a change of access: see `latchkey sync status`',
      )
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
    tell(outcome, originOf(to))
    await settle(outcome)
    return closedUntil
  }
}
