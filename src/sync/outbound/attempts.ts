/* Attempts to send messages: those from the queue, whose results are stored, and tests past it. */

import type { ChangeType } from '../../entitlements/entitlement.js'
import type { Environment } from '../../provider/event.js'
import type { Change } from '../../store/changes.js'
import type { Attempt } from '../../store/message-log.js'
import type { Message, MessageOutcome } from '../../store/message-queue.js'
import type { Tools } from '../context.js'
import { inBatches } from '../loop.js'
import type { Reach } from '../outages.js'
import { HeldBackError, type Outgoing } from '../outgoing.js'
import {
  type Answer,
  isDelivered,
  judgeAnswer,
  originOf,
  postMessage,
  sentOf,
  testOf,
  type WebhookAddress,
} from './message.js'

const AFTER_FAILURE_MS = 5_000
/** The log of a message keeps the newest ones: an outage of three days takes over a hundred. */
const ATTEMPTS_KEPT = 20

export interface OutboundDeps extends Tools {
  /** Called each time, since a reload may change them. */
  readonly addresses: () => readonly WebhookAddress[]
  /** Called each time, too. */
  readonly featuresOf: (productId: string) => readonly string[]
  readonly isPaused: () => Promise<boolean>
  /** By the id of an address. */
  readonly reachOf: (id: string) => Reach
  readonly outgoing: Outgoing
}

/** The state of sending to one address, so that none waits for another. */
export interface Lane {
  /** By the config that was looked at last. */
  url: string
  /** The last retry of its messages, by any instance; undefined: not read yet. */
  retriedAt?: string | null
  /** The receiver asked for no messages until then. */
  closedUntil: number
  queuedUpTo: number | null
  /** By customer: even a message that is sent again waits until the result of the one before it is stored. */
  readonly underWay: Map<string, Promise<void>>
  /** Whose attempts ended while due messages were read: the read may still have found them due. */
  readonly ended: Set<string>
}

export function newLane(url: string): Lane {
  return { url, closedUntil: 0, queuedUpTo: null, underWay: new Map(), ended: new Set() }
}

export function customerOf({ environment, customerId }: Pick<Change, 'environment' | 'customerId'>): string {
  return `${environment}/${customerId}`
}

export function createAttempts(deps: OutboundDeps, onEnd: () => void) {
  const { writeSync, addresses, featuresOf, clock, random, outgoing, log } = deps
  const { post = fetch } = deps
  const stopping = new AbortController()
  const settle = inBatches(async (outcomes: readonly MessageOutcome[]) => {
    await writeSync('recordOutcomes', outcomes)
    return []
  })

  /** Resolves once its result is stored. */
  async function send(to: WebhookAddress, lane: Lane, message: Message): Promise<void> {
    const { cursor, environment, customerId, productId } = message.change
    const sent = sentOf(message, featuresOf(productId))
    const at = clock()
    const answered = await postMessage(to, sent, at, stopping.signal, (address, options) =>
      outgoing.send((signal) => post(address, { ...options, signal }), options.signal),
    ).catch((error: unknown) => {
      // Aborted: the result is unknown, and the message stays due.
      if (stopping.signal.aborted) return null
      throw error
    })
    if (answered === null) return
    const now = clock()
    const isMoved = !addresses().some(({ id, url }) => id === to.id && url === to.url)
    const answer = isMoved ? { ...answered, closedUntil: null } : answered
    // First, so that nothing else is sent during the write.
    lane.closedUntil = Math.max(lane.closedUntil, answer.closedUntil ?? 0)
    const result = judgeAnswer(answer, message, now, random())
    const kept = message.log.slice(1 - ATTEMPTS_KEPT)
    const attempts = [...kept, { at, ms: now - at, ...shownOf(answer) }] as const
    const { queuedAt } = message
    await settle({ cursor, webhook: to.id, queuedAt, environment, customerId, log: attempts, result })
    noteResult(deps, to, sent.id, message, result)
  }

  return {
    begin(to: WebhookAddress, lane: Lane, message: Message): void {
      const customer = customerOf(message.change)
      const sent = send(to, lane, message)
        .catch((error: unknown) => {
          // It is sent again, under the same id.
          lane.closedUntil = clock() + AFTER_FAILURE_MS
          if (error instanceof HeldBackError) return
          log.error({ err: error }, 'could not store the result of an outbound webhook message')
        })
        .finally(() => {
          lane.underWay.delete(customer)
          lane.ended.add(customer)
          onEnd()
        })
      lane.underWay.set(customer, sent)
    },
    /** Ends the attempts in flight: their messages stay due. */
    giveUp: () => stopping.abort(),
  }
}

function noteResult(
  { reachOf, log }: OutboundDeps,
  to: WebhookAddress,
  id: string,
  { change }: Message,
  result: MessageOutcome['result'],
): void {
  const { environment, customerId, productId, cause } = change
  const fields = { webhook: to.id, origin: originOf(to), id, environment, customerId, productId, cause }
  if (result.kind === 'delivered') log.debug(fields, 'webhook delivered')
  else if (result.kind === 'retry') {
    log.debug({ ...fields, why: result.error }, 'webhook delivery failed; retrying for up to 3 days')
  } else {
    const { reason, error: why } = result
    log.error(
      { ...fields, reason, why },
      'webhook delivery given up: see `latchkey sync messages --status failed`',
    )
  }
  // 410 concerns this message; any other failure may concern every message.
  const isAnswered = result.kind === 'delivered' || (result.kind === 'failed' && result.reason === 'gone')
  const reach = reachOf(to.id)
  if (isAnswered) reach.answered()
  else reach.failed(result.error)
}

export interface TestResult extends Pick<Attempt, 'status' | 'error' | 'ms'> {
  readonly id: string
  readonly delivered: boolean
}

export function createTests({ addresses, clock, post = fetch }: OutboundDeps) {
  const testing = new AbortController()
  return {
    /** Sends a test message past the queue and the log, even while sync is paused or the address disabled. */
    async test(id: string, type: ChangeType, environment?: Environment): Promise<TestResult | null> {
      const to = addresses().find((one) => one.id === id)
      if (to === undefined) return null
      const at = clock()
      const sent = testOf(type, environment ?? to.environments[0] ?? 'live', at)
      const answer = await postMessage(to, sent, at, testing.signal, post).catch((error: unknown) => {
        if (testing.signal.aborted) return UNANSWERED
        throw error
      })
      return { id: sent.id, delivered: isDelivered(answer), ...shownOf(answer), ms: clock() - at }
    },
    /** Ends test messages in flight: their requests, which a stop awaits, are answered at once. */
    async endTests(): Promise<void> {
      testing.abort()
    },
  }
}

const UNANSWERED: Answer = {
  status: null,
  reason: 'the daemon stopped before the answer: send the test again',
  closedUntil: null,
}

/** What the log of attempts keeps of an answer. */
function shownOf({ status, reason }: Answer) {
  return { status, error: status === null ? reason : null }
}
