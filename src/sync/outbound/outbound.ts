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

/** The name of the outbound webhook among the targets of a retry. */
const OUTBOUND_TARGET = 'webhook'

/** Maximum number of messages in flight, each for another customer. */
const CONCURRENCY = 8
const AFTER_FAILURE_MS = 5_000
/** Bounds how long one transaction blocks deliveries. */
const MAX_PER_TRANSACTION = 500
/** A stop waits this long for attempts in flight. */
const STOP_WITHIN_MS = 3_000

export interface OutboundStatus {
  /** The only part of the URL that is shown. */
  readonly origin: string
  readonly messages: readonly MessageCount[]
}

export interface OutboundDeps extends Tools {
  /** Called each time, since a reload may change it; null: none is configured. */
  readonly address: () => WebhookAddress | null
  /** Called each time, too. */
  readonly featuresOf: (productId: string) => readonly string[]
  readonly isPaused: () => Promise<boolean>
  readonly reach: Reach
}

/**
 * Sends every change of access to the merchant's URL: in order per customer, at least once. Resolves once its position
 * in the change log is stored: every later change is sent.
 */
export async function createOutbound(deps: OutboundDeps) {
  const { db, writeSync, address, featuresOf, isPaused, clock, random, reach, log } = deps
  const stopping = new AbortController()
  const settle = inBatches(async (outcomes: readonly MessageOutcome[]) => {
    await writeSync('settleMessages', outcomes)
    return []
  })
  const underWay = new Map<number, Promise<void>>()
  const loop = createLoop({ look: queue, work: sendDue, nextAt, clock, log })
  let isStopping = false
  /** The receiver asked for no messages until then. */
  let closedUntil = 0
  let queuedUpTo: number | null = null

  /** Queues the changes appended to the log since; costs one small read if there are none. */
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

  /** Starts all attempts that are due; the end of each one looks for the next. */
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
        log.error({ err: error }, 'could not store the result of an outbound webhook message')
      })
      .finally(() => {
        underWay.delete(cursor)
        loop.workNow()
      })
    underWay.set(cursor, sent)
  }

  /** Makes one attempt, and resolves once its result is stored. */
  async function send(to: WebhookAddress, message: Message): Promise<void> {
    const { cursor, environment, customerId, productId } = message.change
    const sent = { ...message, features: featuresOf(productId) }
    const answer = await postMessage(to, sent, clock(), stopping.signal, deps.post).catch(
      (error: unknown) => {
        // Aborted: the result is unknown, and the message stays due.
        if (stopping.signal.aborted) return null
        throw error
      },
    )
    if (answer === null) return
    // First, so that nothing else is sent during the write.
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
    // 410 concerns this message; any other failure may concern every message.
    const isAnswered = result.kind === 'delivered' || (result.kind === 'parked' && result.reason === 'gone')
    if (isAnswered) reach.answered()
    else reach.failed(result.error)
  }

  /** Due messages beyond the maximum start when an attempt in flight ends. */
  async function nextAt(): Promise<number | null> {
    if (address() === null) return null
    const now = clock()
    return closedUntil > now ? closedUntil : nextMessageAfter(db, now)
  }

  await queue().catch((error: unknown) => {
    log.error({ err: error }, 'could not read the messages of the outbound webhook; retrying')
  })
  loop.wake()
  return {
    wake: loop.wake,
    /**
     * Null: no URL is configured.
     * @param environments whose messages are counted; both if omitted
     */
    async status(environments?: readonly Environment[]): Promise<OutboundStatus | null> {
      const to = address()
      if (to === null) return null
      return { origin: originOf(to), messages: await countMessages(db, environments) }
    },
    /** Makes parked and delayed messages due now, and returns their number. */
    async retry({ target, ...which }: RetryFilter): Promise<number> {
      if (target !== undefined && target !== OUTBOUND_TARGET) return 0
      const count = await writeSync('retryMessages', which)
      closedUntil = 0
      loop.workNow()
      return count
    },
    /** Starts nothing more, and waits a few seconds for attempts in flight. */
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
  begun: 'the outbound webhook sends every change from now on',
  restored:
    'the store was restored with a new change log: the outbound webhook sends every change from now on',
}
