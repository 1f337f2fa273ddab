import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { isStoreBroken, isStoreBusy } from '../store/engine.js'
import type { Incoming, Receipt } from './delivery.js'
import type { Remark, WrittenBatch } from './remarks.js'

/** The sender expects an answer within 5 s; what is not stored by then is refused, so that it comes again. */
const ANSWER_WITHIN_MS = 4_000

/** How long to leave a store alone that could not be written just now. */
const RETRY_AFTER_MS = 50

/** Bounds how long one transaction holds the writer, and how much a crash of it makes others wait. */
const MAX_BATCH = 256

/** Of bodies, since reading them takes several times their size in memory: one at least goes with every batch. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024

/** While one batch is being committed the next one is under way already: the writer never waits for it. */
const MAX_UNDER_WAY = 2

/**
 * Fewer than these wait until nothing is under way: a commit costs much the same for one as for many. (Of 16,
 * 24 and 32 under load, 16 cost the most processor time for each delivery.)
 */
const WORTH_SENDING_AHEAD = 24

/** More than come in the seconds until they would be refused for being late. */
const MAX_WAITING = 4_096

/** Of bodies: what waits must fit into a small server's memory. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

/** How often to look for those that have waited too long: well within the second that is left for the answer. */
const LOOK_FOR_OVERDUE_MS = 100

export interface IngestQueueDeps {
  readonly writeBatch: (deliveries: readonly Incoming[]) => Promise<WrittenBatch>
  readonly log: Logger
  /** Told of every committed batch. */
  readonly onWritten: (remarks: readonly Remark[]) => void
  /** Told when the file or its disk can't be trusted any more. */
  readonly onBroken: (error: unknown) => void
}

interface Waiting {
  readonly delivery: Incoming
  /** Of its body. */
  readonly bytes: number
  readonly deadline: number
  readonly resolve: (receipt: Receipt) => void
  readonly reject: (error: LatchkeyError) => void
}

/** Group commit: while batches are being committed, arriving deliveries gather into the next. */
export function createIngestQueue({ writeBatch, log, onWritten, onBroken }: IngestQueueDeps) {
  const waiting: Waiting[] = []
  let waitingBytes = 0
  /** In the order of their deadlines. */
  const unanswered = new Set<Waiting>()
  let underWay = 0
  let isSendingSoon = false
  let broken = false
  let overdueTimer: NodeJS.Timeout | undefined
  let onDrained: (() => void)[] = []

  function send(): void {
    while (
      waiting.length > 0 &&
      (underWay === 0 || (underWay < MAX_UNDER_WAY && waiting.length >= WORTH_SENDING_AHEAD))
    ) {
      underWay += 1
      void write(takeBatch()).finally(() => {
        underWay -= 1
        send()
        if (underWay === 0) drained()
      })
    }
  }

  /** As many as one transaction may hold. */
  function takeBatch(): Waiting[] {
    let count = 0
    let bytes = 0
    for (const one of waiting) {
      if (count === MAX_BATCH || (count > 0 && bytes + one.bytes > MAX_BATCH_BYTES)) break
      count += 1
      bytes += one.bytes
    }
    waitingBytes -= bytes
    return waiting.splice(0, count)
  }

  /** In a later turn, so that all that arrives in this one shares the batch. */
  function sendSoon(): void {
    if (isSendingSoon) return
    isSendingSoon = true
    setImmediate(() => {
      isSendingSoon = false
      send()
    })
  }

  async function write(batch: readonly Waiting[], isRetry = false): Promise<void> {
    const due = batch.filter((one) => unanswered.has(one))
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
      // What was refused meanwhile for being late is stored now all the same: sent again, it is a duplicate.
      if (unanswered.delete(one) && receipt !== undefined) one.resolve(receipt)
    }
    tell(written.remarks)
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
      // One delivery that can't be written must not keep the others of its batch from being stored.
      for (const one of batch) await write([one])
    } else {
      for (const one of batch) refuseUnwritable(one, error)
    }
  }

  function refuseUnwritable(one: Waiting, error: unknown): void {
    const { delivery } = one
    const what = isByHand(delivery) ? 'what was done by hand' : 'a delivery'
    log.error({ err: error, environment: delivery.environment }, `${what} could not be written`)
    if (!isByHand(delivery)) refuse([one], 'The delivery could not be written.')
    else if (!isLatchkeyError(error, 'store_unavailable')) refuse([one], 'It could not be stored.')
    else if (unanswered.delete(one)) one.reject(error)
  }

  /** What goes wrong in telling changes nothing of what is committed and answered. */
  function tell(remarks: readonly Remark[]): void {
    try {
      onWritten(remarks)
    } catch (error) {
      log.error({ err: error }, 'a committed batch could not be reported')
    }
  }

  function refuse(batch: readonly Waiting[], why: string): void {
    for (const one of batch) if (unanswered.delete(one)) one.reject(notStored(why, one.delivery))
  }

  function refuseOverdue(): void {
    const now = performance.now()
    for (const one of unanswered) {
      if (one.deadline > now) break
      refuse([one], 'The store could not take it in time.')
    }
    if (unanswered.size > 0) return
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
     * @throws {LatchkeyError} `not_stored`: nothing is lost if the sender sends again; of what was done by hand also
     * `store_unavailable`, where something that is stored keeps it from being written: again would not help
     */
    ingest(delivery: Incoming): Promise<Receipt> {
      return new Promise((resolve, reject) => {
        if (broken) return reject(notStored('The store has failed.', delivery))
        const bytes = 'undated' in delivery ? 0 : delivery.body.byteLength
        if (waiting.length >= MAX_WAITING || waitingBytes + bytes > MAX_WAITING_BYTES) {
          return reject(notStored('Too many deliveries are waiting.', delivery))
        }
        const one = { delivery, bytes, deadline: performance.now() + ANSWER_WITHIN_MS, resolve, reject }
        unanswered.add(one)
        waiting.push(one)
        waitingBytes += bytes
        overdueTimer ??= setInterval(refuseOverdue, LOOK_FOR_OVERDUE_MS).unref()
        sendSoon()
      })
    },
    /** What waits to be committed. */
    waiting: () => ({ deliveries: unanswered.size, bytes: waitingBytes }),
    /** Resolves when nothing waits any more. */
    drain: async () => {
      if (waiting.length === 0 && underWay === 0) return
      await new Promise<void>((resolve) => onDrained.push(resolve))
    },
    /** Nothing is acknowledged from then on: the store can't be trusted any more. */
    fail: () => {
      broken = true
    },
    /** False once that is so. */
    isAlive: () => !broken,
  }
}

function notStored(why: string, delivery: Incoming): LatchkeyError {
  return new LatchkeyError('not_stored', `${why} ${isByHand(delivery) ? 'Give' : 'Send'} it again.`)
}

/** Whether a person gave it, as an act or in an import of what nobody signed: there is no sender that sends it again. */
function isByHand(delivery: Incoming): boolean {
  return 'undated' in delivery || delivery.headers === null || delivery.reading !== undefined
}
