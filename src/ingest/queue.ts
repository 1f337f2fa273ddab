import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import { isStoreBroken, isStoreBusy } from '../store/dialect.js'
import type { Incoming, Receipt } from './delivery.js'
import type { WriteBatch, WrittenDelivery } from './write-batch.js'

/** The sender expects an answer within 5 s; what is not stored by then is refused, so that it comes again. */
const ANSWER_WITHIN_MS = 4_000

/** How long to leave a store alone that could not be written just now. */
const RETRY_AFTER_MS = 50

/** Bounds how long one transaction holds the writer, and how much a crash of it makes others wait. */
const MAX_BATCH = 256

/** At about 1 MB each this is the most that waits in memory, in the worst case. */
const MAX_WAITING = 4_096

export interface IngestQueue {
  /**
   * Resolves once the delivery is committed and visible to every query.
   * @throws {LatchkeyError} `not_stored`: nothing is lost if the sender sends again
   */
  ingest(delivery: Incoming): Promise<Receipt>
  /** Resolves when nothing waits any more. */
  drain(): Promise<void>
  /** False once the store has failed for good: nothing is acknowledged from then on. */
  isAlive(): boolean
  length(): number
}

export interface IngestQueueDeps {
  readonly writeBatch: WriteBatch
  readonly log: Logger
  /** Told of every committed batch. */
  readonly onWritten: (written: readonly WrittenDelivery[]) => void
  /** Told once, when the file or its disk can't be trusted any more. */
  readonly onBroken: (error: unknown) => void
}

interface Waiting {
  readonly delivery: Incoming
  readonly deadline: number
  readonly resolve: (receipt: Receipt) => void
  readonly reject: (error: LatchkeyError) => void
}

/** Group commit: while one batch is being committed, arriving deliveries gather into the next. */
export function createIngestQueue({ writeBatch, log, onWritten, onBroken }: IngestQueueDeps): IngestQueue {
  const waiting: Waiting[] = []
  let running: Promise<void> | null = null
  let broken = false

  async function run(): Promise<void> {
    while (waiting.length > 0) await write(waiting.splice(0, MAX_BATCH))
    running = null
  }

  async function write(batch: readonly Waiting[], isRetry = false): Promise<void> {
    const due = refuseOverdue(batch)
    if (due.length === 0) return
    if (broken) return refuse(due, 'The store has failed.')
    let written: readonly WrittenDelivery[]
    try {
      written = await writeBatch(due.map(({ delivery }) => delivery))
    } catch (error) {
      return recover(due, error, isRetry)
    }
    for (const [i, { receipt }] of written.entries()) due[i]?.resolve(receipt)
    tell(written)
  }

  async function recover(batch: readonly Waiting[], error: unknown, isRetry: boolean): Promise<void> {
    if (isStoreBroken(error)) {
      broken = true
      refuse(batch, 'The store has failed.')
      onBroken(error)
    } else if (isStoreBusy(error)) {
      if (!isRetry) log.warn({ err: error }, 'the store can not be written now: trying again')
      await wait(RETRY_AFTER_MS)
      await write(batch, true)
    } else if (batch.length > 1) {
      // One delivery that can't be written must not keep the others of its batch from being stored.
      for (const one of batch) await write([one])
    } else {
      log.error(
        { err: error, environment: batch[0]?.delivery.environment },
        'a delivery could not be written',
      )
      refuse(batch, 'The delivery could not be written.')
    }
  }

  /** What goes wrong in telling changes nothing of what is committed and answered. */
  function tell(written: readonly WrittenDelivery[]): void {
    try {
      onWritten(written)
    } catch (error) {
      log.error({ err: error }, 'a committed batch could not be reported')
    }
  }

  function refuseOverdue(batch: readonly Waiting[]): readonly Waiting[] {
    const now = performance.now()
    refuse(
      batch.filter(({ deadline }) => deadline <= now),
      'The store could not take it in time.',
    )
    return batch.filter(({ deadline }) => deadline > now)
  }

  return {
    ingest(delivery) {
      return new Promise((resolve, reject) => {
        if (broken) return reject(notStored('The store has failed.'))
        if (waiting.length >= MAX_WAITING) return reject(notStored('Too many deliveries are waiting.'))
        waiting.push({ delivery, deadline: performance.now() + ANSWER_WITHIN_MS, resolve, reject })
        // Starts in a later turn, so that what arrives in this one shares the batch.
        running ??= Promise.resolve().then(run)
      })
    },
    drain: async () => {
      while (running !== null) await running
    },
    isAlive: () => !broken,
    length: () => waiting.length,
  }
}

function refuse(batch: readonly Waiting[], why: string): void {
  for (const { reject } of batch) reject(notStored(why))
}

function notStored(why: string): LatchkeyError {
  return new LatchkeyError('not_stored', `${why} Send it again.`)
}
