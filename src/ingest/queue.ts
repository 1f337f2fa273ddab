import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { isStoreBroken, isStoreBusy } from '../store/engine.js'
import { signedHeaders } from '../store/events.js'
import type { WriteBatch, WrittenBatch } from './commit.js'
import type { Incoming, Receipt } from './delivery.js'
import type { Remark } from './remarks.js'

/** The sender expects an answer within 5 s; deliveries not stored by then are refused, so that they come again. */
const ANSWER_WITHIN_MS = 4_000

/** The wait before retrying a store that could not be written. */
const RETRY_AFTER_MS = 50

/** Bounds how long one transaction occupies the writer, and how many requests a crash delays. */
const MAX_BATCH = 256

/** Of bodies, since reading them takes several times their size in memory; every batch has at least one. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024

/**
 * Fewer than these wait until nothing is being written: a commit costs about the same for one as for many. (Of 16, 24
 * and 32 under load, 16 cost the most CPU time per delivery.)
 */
const WORTH_SENDING_AHEAD = 24

/** Of all batches under way in one process: PostgreSQL has room for some thousand locks of all processes together. */
const MAX_LOCKS = 2_000

/** The longest wait for more deliveries while a writer is free, and how much of a batch's usual time it is. */
const GATHER_AT_MOST_MS = 50
const GATHER_PART = 1 / 2

/** The weight of a batch in the usual time. */
const LATELY = 1 / 8

/** More than can arrive in the seconds before they would be refused as late. */
const MAX_WAITING = 4_096

/** Of bodies: the queue must fit into a small server's memory. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

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

interface Waiting {
  readonly delivery: Incoming
  /** Of its body. */
  readonly bytes: number
  readonly deadline: number
  readonly locks: readonly string[]
  readonly resolve: (receipt: Receipt) => void
  readonly reject: (error: LatchkeyError) => void
}

/**
 * Group commit: while batches are being committed, arriving deliveries collect in the next.
 */
export function createIngestQueue(deps: IngestQueueDeps) {
  const { writeBatch, log, underWayAtMost, locksOf, onWritten, onBroken } = deps
  let waiting: Waiting[] = []
  let waitingBytes = 0
  /** What the batches under way lock. */
  const locked = new Set<string>()
  /** How long a batch has taken lately, in milliseconds. */
  let usualMs = 5
  let gathering: NodeJS.Timeout | undefined
  /**
   * In the order of their deadlines. A list, since a set that is filled and emptied all the time leaves tables behind,
   * and each holds what was in it, bodies too, until the next collection of the whole heap.
   */
  const unanswered: Waiting[] = []
  let underWay = 0
  let isSendingSoon = false
  let broken = false
  let overdueTimer: NodeJS.Timeout | undefined
  let onDrained: (() => void)[] = []

  /** @param few whether also a batch of few */
  function send(few = false): void {
    while (waiting.length > 0 && underWay < underWayAtMost) {
      if (underWay > 0 && !few && waiting.length < WORTH_SENDING_AHEAD) {
        gather()
        return
      }
      const batch = locksOf === undefined ? takeBatch() : takeFree()
      if (batch.length === 0) return
      for (const { locks } of batch) for (const name of locks) locked.add(name)
      underWay += 1
      const from = performance.now()
      void write(batch).finally(() => {
        usualMs += (performance.now() - from - usualMs) * LATELY
        underWay -= 1
        for (const { locks } of batch) for (const name of locks) locked.delete(name)
        // The senders who are answered now send the next: those share a batch.
        if (locksOf === undefined) send()
        else sendSoon()
        if (underWay === 0) drained()
      })
    }
  }

  /** A commit costs about the same for one as for many, so that a free writer waits a little for more. */
  function gather(): void {
    if (locksOf === undefined || gathering !== undefined) return
    const ms = Math.min(GATHER_AT_MOST_MS, (usualMs * GATHER_PART) / underWayAtMost)
    gathering = setTimeout(() => {
      gathering = undefined
      send(true)
    }, ms)
  }

  /** As many as one transaction may hold. */
  function takeBatch(): Waiting[] {
    let count = 0
    let bytes = 0
    for (const one of waiting) {
      if (!fits(one, count, bytes)) break
      count += 1
      bytes += one.bytes
    }
    waitingBytes -= bytes
    return waiting.splice(0, count)
  }

  function fits(one: Waiting, count: number, bytes: number): boolean {
    return count < MAX_BATCH && (count === 0 || bytes + one.bytes <= MAX_BATCH_BYTES)
  }

  /** The same, of those that concern nothing that is under way, nor anything that an earlier one waits for. */
  function takeFree(): Waiting[] {
    const taken: Waiting[] = []
    const left: Waiting[] = []
    const awaited = new Set<string>()
    let bytes = 0
    let locks = locked.size
    for (const one of waiting) {
      const isFree = one.locks.every((name) => !locked.has(name) && !awaited.has(name))
      const hasRoom = locks + one.locks.length <= MAX_LOCKS || (taken.length === 0 && underWay === 0)
      if (isFree && hasRoom && fits(one, taken.length, bytes)) {
        taken.push(one)
        bytes += one.bytes
        locks += one.locks.length
      } else {
        left.push(one)
        for (const name of one.locks) awaited.add(name)
      }
    }
    waitingBytes -= bytes
    waiting = left
    return taken
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

  async function write(batch: readonly Waiting[], isRetry = false): Promise<void> {
    const due = batch.filter((one) => unanswered.includes(one))
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
      if (isFirstAnswer(one) && receipt !== undefined) one.resolve(receipt)
    }
    report(written.remarks)
  }

  async function recover(batch: readonly Waiting[], error: unknown, isRetry: boolean): Promise<void> {
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

  /** Whether it had no answer yet. */
  function isFirstAnswer(one: Waiting): boolean {
    // Mostly the first: they are answered in the order in which they came.
    const at = unanswered.indexOf(one)
    if (at !== -1) unanswered.splice(at, 1)
    return at !== -1
  }

  function refuseUnwritable(one: Waiting, error: unknown): void {
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

  function refuse(batch: readonly Waiting[], why: string): void {
    for (const one of batch) if (isFirstAnswer(one)) one.reject(notStored(why, one.delivery))
  }

  function refuseOverdue(): void {
    const now = performance.now()
    const overdue = unanswered.filter(({ deadline }) => deadline <= now)
    refuse(overdue, 'The store could not take it in time.')
    if (unanswered.length > 0) return
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
        if (waiting.length >= MAX_WAITING || waitingBytes + bytes > MAX_WAITING_BYTES) {
          return reject(notStored('Too many deliveries are waiting.', delivery))
        }
        const deadline = performance.now() + ANSWER_WITHIN_MS
        const one = { delivery, bytes, deadline, locks: locksOf?.(delivery) ?? [], resolve, reject }
        unanswered.push(one)
        waiting.push(one)
        waitingBytes += bytes
        overdueTimer ??= setInterval(refuseOverdue, LOOK_FOR_OVERDUE_MS).unref()
        sendSoon()
      })
    },
    /** Deliveries that wait to be committed. */
    waiting: () => ({ deliveries: unanswered.length, bytes: waitingBytes }),
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

function notStored(why: string, delivery: Incoming): LatchkeyError {
  return new LatchkeyError('not_stored', `${why} ${isByHand(delivery) ? 'Try again.' : 'Send it again.'}`)
}

/** Whether no sender repeats it: a change by hand, a report, or a line of an import that is not signed. */
function isByHand(delivery: Incoming): boolean {
  return 'undated' in delivery || signedHeaders(delivery.headers) === null || delivery.reading !== undefined
}
