import type { Message, MessageOutcome } from '../../../store/messages.js'
import { type BackOff, backOffMs } from '../../back-off.js'
import type { Answer } from './post-message.js'
import { retryAfter } from './retry-after.js'

const BACK_OFF: BackOff = { first: 1_000, most: 3_600_000 }
/** Long enough for a receiver that breaks on a Friday evening. */
const GIVE_UP_AFTER_MS = 3 * 86_400_000

/** The receiver's own word that it will never take anything again. */
const GONE = 410

export interface Verdict {
  readonly result: MessageOutcome['result']
  /** Until when the receiver asked to be sent nothing, in epoch milliseconds; null: it did not. */
  readonly closedUntil: number | null
}

/**
 * What follows from an answer, as of `now` (epoch milliseconds).
 * @param random from 0 up to 1: spreads the waits of messages that failed together
 */
export function judgeAnswer(
  answer: Answer,
  { attempts, firstAttemptAt }: Pick<Message, 'attempts' | 'firstAttemptAt'>,
  now: number,
  random: number,
): Verdict {
  if (answer.kind === 'answered' && answer.status >= 200 && answer.status < 300) {
    return { result: { kind: 'delivered' }, closedUntil: null }
  }
  const error = answer.kind === 'answered' ? `answered ${answer.status}` : answer.reason
  if (answer.kind === 'answered' && answer.status === GONE) {
    return { result: { kind: 'parked', error, reason: 'gone' }, closedUntil: null }
  }
  const closedUntil = answer.kind === 'answered' ? retryAfter(answer.retryAfter, now) : null
  const begun = firstAttemptAt ?? now
  if (now - begun >= GIVE_UP_AFTER_MS) {
    return { result: { kind: 'parked', error, reason: 'given_up' }, closedUntil }
  }
  const nextAttemptAt = Math.max(now + backOffMs(attempts + 1, BACK_OFF, random), closedUntil ?? 0)
  return { result: { kind: 'retry', error, firstAttemptAt: begun, nextAttemptAt }, closedUntil }
}
