import type { Environment } from '../../provider/event.js'
import { latestCursor } from '../../store/changes.js'
import type { RetryFilter } from '../../store/memberships.js'
import {
  countMessages,
  loadDueMessages,
  type Message,
  type MessageCount,
  type MessageOutcome,
  nextMessageAfter,
  type QueuedMessages,
} from '../../store/messages.js'
import type { Tools } from '../context.js'
import { createLoop, inBatches } from '../loop.js'
import type { Reach } from '../outages.js'
import { judgeAnswer, messageId, originOf, postMessage, type WebhookAddress } from './message.js'

/** Stands among the targets of a retry for the outbound webhook. */
const OUTBOUND_TARGET = 'webhook'

/** How many are under way at once, each of another customer. */
const CONCURRENCY = 8
const AFTER_FAILURE_MS = 5_000
/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500
/** What is under way at the end is waited for; a receiver that hangs is not. */
const STOP_WITHIN_MS = 3_000

export interface OutboundStatus {
  /** Of the address no more than this is told. */
  readonly origin: string
  readonly messages: readonly MessageCount[]
}

export interface OutboundDeps extends Tools {
  /** Asked each time, since a reload may change it; null: none is configured. */
  readonly address: () => WebhookAddress | null
  readonly isPaused: () => Promise<boolean>
  readonly reach: Reach
}

/**
 * Tells the merchant's own address of every change of access, in order for each customer, at least once. Resolves once
 * its place in the change log is kept: what changes from then on is told.
 */
export async function createOutbound(deps: OutboundDeps) {
  const { db, writeSync, address, isPaused, clock, random, reach, log } = deps
  const stopping = new AbortController()
  const settle = inBatches(async (outcomes: readonly MessageOutcome[]) => {
    await writeSync('settleMessages', outcomes)
    return []
  })
  const underWay = new Map<number, Promise<void>>()
  const loop = createLoop({ look: queue, work: sendDue, nextAt, clock, log })
  let isStopping = false
  /** Until when the receiver asked to be sent nothing. */
  let closedUntil = 0
  let queuedUpTo: number | null = null

  /** Queues what was appended to the change log since; costs one small read where there is nothing. */
  async function queue(): Promise<void> {
    const to = address()
    if (to === null) return
    const { environments } = to
    while (queuedUpTo === null || (await latestCursor(db)) > queuedUpTo) {
      const { upTo, from } = await writeSync('queueMessages', { environments, limit: MAX_PER_TRANSACTION })
      queuedUpTo = upTo
      if (from !== 'kept') log.info({ origin: originOf(to) }, BEGUN[from])
    }
  }

  /** Begins what may be begun now; the end of each looks for the next. */
  async function sendDue(): Promise<void> {
    const to = address()
    const now = clock()
    if (to === null || closedUntil > now || (await isPaused())) return
    const due = await loadDueMessages(db, now, CONCURRENCY + underWay.size)
    for (const message of due) {
      const isFree = underWay.size < CONCURRENCY && !underWay.has(message.change.cursor)
      if (isFree && !isStopping) begin(to, message)
    }
  }

  function begin(to: WebhookAddress, message: Message): void {
    const { cursor } = message.change
    const sent = send(to, message)
      .catch((error: unknown) => {
        // It is sent again, under the same id.
        closedUntil = clock() + AFTER_FAILURE_MS
        log.error({ err: error }, 'could not write down what became of the outbound webhook')
      })
      .finally(() => {
        underWay.delete(cursor)
        loop.workNow()
      })
    underWay.set(cursor, sent)
  }

  /** Makes one attempt, and resolves once what became of it is written down. */
  async function send(to: WebhookAddress, message: Message): Promise<void> {
    const { cursor, environment, customerId } = message.change
    const answer = await postMessage(to, message, clock(), stopping.signal).catch((error: unknown) => {
      // Nothing is known of it, and so it stays as it was.
      if (stopping.signal.aborted) return null
      throw error
    })
    if (answer === null) return
    // First, so that nothing else is sent while this is being written.
    closedUntil = Math.max(closedUntil, answer.closedUntil ?? 0)
    const result = judgeAnswer(answer, message, clock(), random())
    await settle({ cursor, environment, customerId, result })
    logAttempt(to, message, result)
  }

  function logAttempt(to: WebhookAddress, message: Message, result: MessageOutcome['result']): void {
    const { environment, customerId, productId, cause } = message.change
    const fields = { origin: originOf(to), id: messageId(message), environment, customerId, productId, cause }
    if (result.kind === 'delivered') log.debug(fields, 'webhook delivered')
    else if (result.kind === 'retry') {
      log.debug({ ...fields, why: result.error }, 'webhook delivery failed; retrying for up to 3 days')
    } else {
      const { reason, error: why } = result
      log.error({ ...fields, reason, why }, 'webhook parked, and not sent again: see `latchkey sync status`')
    }
    // Gone is an answer to this message; anything else may meet every message.
    const isAnswered = result.kind === 'delivered' || (result.kind === 'parked' && result.reason === 'gone')
    if (isAnswered) reach.answered()
    else reach.failed(result.error)
  }

  /** What is due and not under way waits for the end of something that is. */
  async function nextAt(): Promise<number | null> {
    if (address() === null) return null
    const now = clock()
    return closedUntil > now ? closedUntil : nextMessageAfter(db, now)
  }

  await queue().catch((error: unknown) => {
    log.error({ err: error }, 'could not read what the outbound webhook has to send: trying again')
  })
  loop.wake()
  return {
    wake: loop.wake,
    /**
     * Null: no address is configured.
     * @param environments whose messages it counts; left out: of both
     */
    async status(environments?: readonly Environment[]): Promise<OutboundStatus | null> {
      const to = address()
      if (to === null) return null
      return { origin: originOf(to), messages: await countMessages(db, environments) }
    },
    /** Makes due what is parked, and what waits for its time; answers how many that is. */
    async retry({ target, ...which }: RetryFilter): Promise<number> {
      if (target !== undefined && target !== OUTBOUND_TARGET) return 0
      const count = await writeSync('retryMessages', which)
      closedUntil = 0
      loop.workNow()
      return count
    },
    /** Begins nothing any more, and waits a few seconds for what is under way. */
    async stop(): Promise<void> {
      isStopping = true
      const giveUp = setTimeout(() => stopping.abort(), STOP_WITHIN_MS)
      await loop.stop(STOP_WITHIN_MS)
      await Promise.all(underWay.values())
      clearTimeout(giveUp)
    },
  }
}

const BEGUN: Readonly<Record<Exclude<QueuedMessages['from'], 'kept'>, string>> = {
  begun: 'the outbound webhook tells what changes from now on',
  restored:
    'the change log is another one since a restore: the outbound webhook tells what changes from now on',
}
