import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { isStoreBroken, isStoreBusy } from '../store/engine.js'
import { signedHeaders } from '../store/events.js'
import type { WriteBatch, WrittenBatch } from './commit.js'
import type { Incoming, Receipt } from './delivery.js'
import type { Remark } from './remarks.js'
import { createWaitingList, type Waiting } from './waiting-list.js'

/** The sender expects an answer within 5 s; deliveries not stored by then are refused, so that they come again. */
const ANSWER_WITHIN_MS = 4_000

/** The wait before retrying a store that could not be written. */
const RETRY_AFTER_MS = 50

/**
 * Fewer than these wait until nothing is being written: a commit costs about the same for one as for many. (Of 16, 24
 * and 32 under load, 16 cost the most CPU time per delivery.)
 */
const WORTH_SENDING_AHEAD = 24

/** The longest wait for more deliveries while a writer is free, and how much of a batch's usual time it is. */
const GATHER_AT_MOST_MS = 50
const GATHER_PART = 1 / 2

/** The weight of a batch in the usual time. */
const LATELY = 1 / 8

/** How often to look for deliveries that have waited too long: well within the last second for the answer. */
const LOOK_FOR_OVERDUE_MS = 100

export interface IngestQueueDeps {
  readonly writeBatch: WriteBatch
  readonly log: Logger
  /** How many batches may be sent before the first is committed, so that the writer never waits for one. */
  readonly underWayAtMost: number
  /**
   * What a delivery locks, by names. If given, batches under way are committed beside each other, and none has a
   * delivery that another one's would wait for. If omitted, they are committed in order.
   */
  readonly locksOf?: (delivery: Incoming) => readonly string[]
  /** Called with every committed batch. */
  readonly onWritten: (remarks: readonly Remark[]) => void
  /** Called when the file or its disk can't be trusted any more. */
  readonly onBroken: (error: unknown) => void
}

interface Sent extends Waiting {
  readonly delivery: Incoming
  readonly deadline: number
  readonly resolve: (receipt: Receipt) => void
  readonly reject: (error: LatchkeyError) => void
  isAnswered: boolean
}

/**
 * Group commit: while batches are being committed, arriving deliveries collect in the next.
 */
export function createIngestQueue(deps: IngestQueueDeps) {
  const { writeBatch, log, underWayAtMost, locksOf, onWritten, onBroken } = deps
  const waiting = createWaitingList<Sent>()
  const gathering = createGathering(underWayAtMost, () => send(true))
  /**
   * In the order of their deadlines, with those that were answered since the last look for overdue ones. A set that is
   * filled and emptied all the time would hold what was in it, bodies too, until the next collection of the whole heap.
   */
  let sent: Sent[] = []
  let unanswered = 0
  let underWay = 0
  let isSendingSoon = false
  let broken = false
  let overdueTimer: NodeJS.Timeout | undefined
  let onDrained: (() => void)[] = []

  /** @param few whether also a batch of few */
  function send(few = false): void {
    while (waiting.length > 0 && underWay < underWayAtMost) {
      if (underWay > 0 && !few && waiting.length < WORTH_SENDING_AHEAD) {
        // A free writer of several waits a little for more.
        if (locksOf !== undefined) gathering.begin()
        return
      }
      const batch = waiting.take()
      if (batch.length === 0) return
      underWay += 1
      const from = performance.now()
      void write(batch).finally(() => {
        gathering.took(performance.now() - from)
        underWay -= 1
        waiting.end(batch)
        // The senders who are answered now send the next: those share a batch.
        if (locksOf === undefined) send()
        else sendSoon()
        if (underWay === 0) drained()
      })
    }
  }

  /** In a later turn, so that all deliveries of this one share the batch. */
  function sendSoon(): void {
    if (isSendingSoon) return
    isSendingSoon = true
    setImmediate(() => {
      isSendingSoon = false
      send()
    })
  }

  async function write(batch: readonly Sent[], isRetry = false): Promise<void> {
    const due = batch.filter((one) => !one.isAnswered)
    if (due.length === 0) return
    if (broken) return refuse(due, 'The store has failed.')
    let written: WrittenBatch
    try {
      written = await writeBatch(due.map(({ delivery }) => delivery))
    } catch (error) {
      return recover(due, error, isRetry)
    }
    if (broken) return refuse(due, 'The store has failed.')
    for (const [i, one] of due.entries()) {
      const receipt = written.receipts[i]
      // Deliveries refused as late are stored now all the same: sent again, they are duplicates.
      if (receipt !== undefined && isFirstAnswer(one)) one.resolve(receipt)
    }
    report(written.remarks)
  }

  async function recover(batch: readonly Sent[], error: unknown, isRetry: boolean): Promise<void> {
    if (isStoreBroken(error) || isLatchkeyError(error, 'writer_ended')) {
      broken = true
      refuse(batch, 'The store has failed.')
      onBroken(error)
    } else if (isStoreBusy(error)) {
      if (!isRetry) log.warn({ err: error }, 'the store cannot be written now: trying again')
      await wait(RETRY_AFTER_MS)
      await write(batch, true)
    } else if (batch.length > 1) {
      // One delivery that can't be written must not block the others of its batch.
      for (const one of batch) await write([one])
    } else {
      for (const one of batch) refuseUnwritable(one, error)
    }
  }

  function isFirstAnswer(one: Sent): boolean {
    if (one.isAnswered) return false
    one.isAnswered = true
    unanswered -= 1
    return true
  }

  function refuseUnwritable(one: Sent, error: unknown): void {
    const { delivery } = one
    const what = isByHand(delivery) ? 'a manual change' : 'a delivery'
    log.error({ err: error, environment: delivery.environment }, `${what} could not be written`)
    if (!isByHand(delivery)) refuse([one], 'The delivery could not be written.')
    else if (!isLatchkeyError(error, 'store_unavailable')) refuse([one], 'It could not be stored.')
    else if (isFirstAnswer(one)) one.reject(error)
  }

  /** A failure to report changes nothing that is committed and answered. */
  function report(remarks: readonly Remark[]): void {
    try {
      onWritten(remarks)
    } catch (error) {
      log.error({ err: error }, 'a committed batch could not be reported')
    }
  }

  function refuse(batch: readonly Sent[], why: string): void {
    for (const one of batch) if (isFirstAnswer(one)) one.reject(notStored(why, one.delivery))
  }

  function refuseOverdue(): void {
    const now = performance.now()
    refuse(
      sent.filter(({ deadline }) => deadline <= now),
      'The store could not take it in time.',
    )
    sent = sent.filter(({ isAnswered }) => !isAnswered)
    if (sent.length > 0) return
    clearInterval(overdueTimer)
    overdueTimer = undefined
  }

  function drained(): void {
    if (waiting.length > 0) return
    for (const resolve of onDrained) resolve()
    onDrained = []
  }

  return {
    /**
     * Resolves once the delivery is committed and visible to every query.
     * @throws {LatchkeyError} `not_stored`: nothing is lost if the sender sends again; for changes by hand also
     * `store_unavailable`, if damaged data prevents it: retrying would not help
     */
    ingest(delivery: Incoming): Promise<Receipt> {
      return new Promise((resolve, reject) => {
        if (broken) return reject(notStored('The store has failed.', delivery))
        const bytes = 'undated' in delivery ? 0 : delivery.body.byteLength
        if (!waiting.hasRoomFor(bytes)) return reject(notStored('Too many deliveries are waiting.', delivery))
        const deadline = performance.now() + ANSWER_WITHIN_MS
        const locks = locksOf?.(delivery) ?? []
        const one = { delivery, bytes, deadline, locks, resolve, reject, isAnswered: false }
        unanswered += 1
        sent.push(one)
        waiting.add(one)
        overdueTimer ??= setInterval(refuseOverdue, LOOK_FOR_OVERDUE_MS).unref()
        sendSoon()
      })
    },
    /** Deliveries that wait to be committed. */
    waiting: () => ({ deliveries: unanswered, bytes: waiting.bytes }),
    /** Resolves when nothing waits any more. */
    drain: async () => {
      if (waiting.length === 0 && underWay === 0) return
      await new Promise<void>((resolve) => onDrained.push(resolve))
    },
    /** Acknowledges nothing from now on: the store can't be trusted any more. */
    fail: () => {
      broken = true
    },
    /** False after `fail`. */
    isAlive: () => !broken,
  }
}

/** Calls back after a part of the time that a batch has taken lately. */
function createGathering(writers: number, onEnd: () => void) {
  let usualMs = 5
  let timer: NodeJS.Timeout | undefined
  return {
    took(ms: number): void {
      usualMs += (ms - usualMs) * LATELY
    },
    begin(): void {
      if (timer !== undefined) return
      const ms = Math.min(GATHER_AT_MOST_MS, (usualMs * GATHER_PART) / writers)
      timer = setTimeout(() => {
        timer = undefined
        onEnd()
      }, ms)
    },
  }
}

function notStored(why: string, delivery: Incoming): LatchkeyError {
  return new LatchkeyError('not_stored', `${why} ${isByHand(delivery) ? 'Try again.' : 'Send it again.'}`)
}

/** Whether no sender repeats it: a change by hand, a report, or a line of an import that is not signed. */
function isByHand(delivery: Incoming): boolean {
  return 'undated' in delivery || signedHeaders(delivery.headers) === null || delivery.reading !== undefined
}
