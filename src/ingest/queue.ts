import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isLatchkeyError } from '../errors.js'
import { isStoreBroken, isStoreBusy } from '../store/engine.js'
import { createAnswering, isByHand, notStored, type Unanswered, waitsFromNow } from './answering.js'
import type { WriteBatch, WrittenBatch } from './commit.js'
import type { Incoming, Receipt } from './delivery.js'
import type { Remark } from './remarks.js'
import { createWaitingList, type Waiting } from './waiting-list.js'

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

/** Why a delivery is refused once the store can't be trusted. */
const FAILED = 'The store has failed.'

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

type Sent = Unanswered & Waiting

/**
 * Group commit: while batches are being committed, arriving deliveries collect in the next.
 */
export function createIngestQueue(deps: IngestQueueDeps) {
  const { writeBatch, log, underWayAtMost, locksOf, onWritten, onBroken } = deps
  const waiting = createWaitingList<Sent>()
  const gathering = createGathering(underWayAtMost, () => send(true))
  const answering = createAnswering()
  let underWay = 0
  let isSendingSoon = false
  let broken = false
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
    if (broken) return answering.refuse(due, FAILED)
    let written: WrittenBatch
    try {
      written = await writeBatch(due.map(({ delivery }) => delivery))
    } catch (error) {
      return recover(due, error, isRetry)
    }
    if (broken) return answering.refuse(due, FAILED)
    for (const [i, one] of due.entries()) {
      const receipt = written.receipts[i]
      // Deliveries refused as late are stored now all the same: sent again, they are duplicates.
      if (receipt !== undefined) answering.acknowledge(one, receipt)
    }
    report(written.remarks)
  }

  async function recover(batch: readonly Sent[], error: unknown, isRetry: boolean): Promise<void> {
    if (isStoreBroken(error) || isLatchkeyError(error, 'writer_ended')) {
      broken = true
      answering.refuse(batch, FAILED)
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

  function refuseUnwritable(one: Sent, error: unknown): void {
    const { delivery } = one
    const what = isByHand(delivery) ? 'a manual change' : 'a delivery'
    log.error({ err: error, environment: delivery.environment }, `${what} could not be written`)
    if (!isByHand(delivery)) answering.refuse([one], 'The delivery could not be written.')
    else if (!isLatchkeyError(error, 'store_unavailable')) answering.refuse([one], 'It could not be stored.')
    else answering.fail(one, error)
  }

  /** A failure to report changes nothing that is committed and answered. */
  function report(remarks: readonly Remark[]): void {
    try {
      onWritten(remarks)
    } catch (error) {
      log.error({ err: error }, 'a committed batch could not be reported')
    }
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
        if (broken) return reject(notStored(FAILED, delivery))
        const bytes = 'undated' in delivery ? 0 : delivery.body.byteLength
        if (!waiting.hasRoomFor(bytes)) return reject(notStored('Too many deliveries are waiting.', delivery))
        const locks = locksOf?.(delivery) ?? []
        const one = { delivery, bytes, locks, resolve, reject, ...waitsFromNow() }
        answering.add(one)
        waiting.add(one)
        sendSoon()
      })
    },
    /** Deliveries that wait to be committed. */
    waiting: () => ({ deliveries: answering.waiting, bytes: waiting.bytes }),
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
