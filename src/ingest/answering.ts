import { LatchkeyError } from '../errors.js'
import { signedHeaders } from '../store/events.js'
import type { Incoming, Receipt } from './delivery.js'

/** The sender expects an answer within 5 s; deliveries not stored by then are refused, so that they come again. */
const ANSWER_WITHIN_MS = 4_000

/** How often to look for deliveries that have waited too long: well within the last second for the answer. */
const LOOK_FOR_OVERDUE_MS = 100

/** A delivery whose sender waits. */
export interface Unanswered {
  readonly delivery: Incoming
  readonly resolve: (receipt: Receipt) => void
  readonly reject: (error: LatchkeyError) => void
  /** Of `performance.now()`. */
  readonly deadline: number
  isAnswered: boolean
}

/** What is new about a delivery that arrives now. */
export const waitsFromNow = () => ({ deadline: performance.now() + ANSWER_WITHIN_MS, isAnswered: false })

/** Answers each sender once, and in time. */
export function createAnswering() {
  /**
   * In the order of their deadlines, with those that were answered since the last look for overdue ones. A set that is
   * filled and emptied all the time would hold what was in it, bodies too, until the next collection of the whole heap.
   */
  let sent: Unanswered[] = []
  let waiting = 0
  let timer: NodeJS.Timeout | undefined

  function isFirstAnswer(one: Unanswered): boolean {
    if (one.isAnswered) return false
    one.isAnswered = true
    waiting -= 1
    return true
  }

  function fail(one: Unanswered, error: LatchkeyError): void {
    if (isFirstAnswer(one)) one.reject(error)
  }

  function refuse(batch: readonly Unanswered[], why: string): void {
    for (const one of batch) fail(one, notStored(why, one.delivery))
  }

  function refuseOverdue(): void {
    const now = performance.now()
    const overdue = sent.filter(({ deadline }) => deadline <= now)
    refuse(overdue, 'The store could not take it in time.')
    sent = sent.filter(({ isAnswered }) => !isAnswered)
    if (sent.length > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    /** How many senders wait. */
    get waiting() {
      return waiting
    },
    add(one: Unanswered): void {
      waiting += 1
      sent.push(one)
      timer ??= setInterval(refuseOverdue, LOOK_FOR_OVERDUE_MS).unref()
    },
    /** A sender who was refused as late hears nothing more. */
    acknowledge(one: Unanswered, receipt: Receipt): void {
      if (isFirstAnswer(one)) one.resolve(receipt)
    },
    fail,
    /** @param why a sentence */
    refuse,
  }
}

export function notStored(why: string, delivery: Incoming): LatchkeyError {
  return new LatchkeyError('not_stored', `${why} ${isByHand(delivery) ? 'Try again.' : 'Send it again.'}`)
}

/** Whether no sender repeats it: a change by hand, a report, or a line of an import that is not signed. */
export function isByHand(delivery: Incoming): boolean {
  return 'undated' in delivery || signedHeaders(delivery.headers) === null || delivery.reading !== undefined
}
