import type { ChangeType } from '../../entitlements/entitlement.js'
import type { Environment } from '../../provider/event.js'
import { type Change, latestCursor } from '../../store/changes.js'
import type { RetryFilter } from '../../store/memberships.js'
import { readWebhookState, type WebhookState } from '../../store/message-counters.js'
import {
  type Attempt,
  findMessages,
  type MessageFilter,
  type MessageKey,
  type MessagePage,
} from '../../store/message-log.js'
import {
  lastRetryOf,
  loadDueMessages,
  type Message,
  type MessageOutcome,
  nextMessageAfter,
  type QueuedMessages,
} from '../../store/message-queue.js'
import type { Db } from '../../store/schema.js'
import type { Tools } from '../context.js'
import { createLoop, inBatches, oneAtATime } from '../loop.js'
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

/** Names all addresses among the targets of a retry; `webhook:<id>` names one. */
const ALL_WEBHOOKS = 'webhook'

/** Maximum number of messages in flight to one address, each for another customer. */
const CONCURRENCY = 8
const AFTER_FAILURE_MS = 5_000
/** Bounds how long one transaction blocks deliveries. */
const MAX_PER_TRANSACTION = 500
/** A stop waits this long for attempts in flight. */
const STOP_WITHIN_MS = 3_000
/** The log of a message keeps the newest ones: an outage of three days takes over a hundred. */
const ATTEMPTS_KEPT = 20

export interface WebhookStatus extends WebhookState {
  readonly id: string
  /** The only part of the URL that is shown. */
  readonly origin: string
  readonly disabled: boolean
}

/** @param environments whose messages are counted; both if omitted */
export async function readWebhooks(
  db: Db,
  addresses: readonly WebhookAddress[],
  environments?: readonly Environment[],
): Promise<readonly WebhookStatus[]> {
  const states = addresses.map(async (to) => {
    const { id, disabled } = to
    return { id, origin: originOf(to), disabled, ...(await readWebhookState(db, id, environments)) }
  })
  return Promise.all(states)
}

/**
 * Queues logged messages and each customer's later ones once more for the addresses that are still configured, under
 * their ids and in their order.
 * @returns how many; those that are pending don't count
 */
export async function replay(
  { db, writeSync }: Pick<Tools, 'db' | 'writeSync'>,
  addresses: readonly WebhookAddress[],
  { webhooks, ...filter }: MessageFilter,
): Promise<number> {
  const ids = addresses.map(({ id }) => id).filter((id) => webhooks?.includes(id) ?? true)
  if (ids.length === 0) return 0
  let count = 0
  let after: MessageKey | undefined
  /** All of a customer's messages are queued with the first: a later page would send them twice. */
  const queued = new Set<string>()
  for (;;) {
    const page: MessagePage = { order: 'oldest first', limit: MAX_PER_TRANSACTION, ...(after && { after }) }
    const found = await findMessages(db, { ...filter, webhooks: ids }, page)
    after = found.at(-1)
    if (after === undefined) return count
    const firsts = found.filter((one) => {
      const customer = `${one.webhook} ${customerOf(one)}`
      return !queued.has(customer) && queued.add(customer)
    })
    const keys = firsts.map(({ cursor, webhook }) => ({ cursor, webhook }))
    count += await writeSync('replayMessages', keys)
  }
}

/** What happened to a test message. */
export interface TestResult extends Pick<Attempt, 'status' | 'error' | 'ms'> {
  readonly id: string
  readonly delivered: boolean
}

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
interface Lane {
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

function customerOf({ environment, customerId }: Pick<Change, 'environment' | 'customerId'>): string {
  return `${environment}/${customerId}`
}

/**
 * Sends every change of access to the merchant's URLs: to each in order per customer, at least once. Resolves once its
 * position in the change log is stored for each: every later change is sent.
 */
export async function createOutbound(deps: OutboundDeps) {
  const { db, writeSync, addresses, featuresOf, isPaused, clock, random, reachOf, outgoing, log } = deps
  const { post = fetch } = deps
  const stopping = new AbortController()
  const testing = new AbortController()
  const settle = inBatches(async (outcomes: readonly MessageOutcome[]) => {
    await writeSync('recordOutcomes', outcomes)
    return []
  })
  const lanes = new Map<string, Lane>()
  const loop = createLoop({ look: queue, work: oneAtATime(sendDue), nextAt, clock, log })
  let isStopping = false

  function laneOf({ id, url }: WebhookAddress): Lane {
    const begun = { url, closedUntil: 0, queuedUpTo: null, underWay: new Map(), ended: new Set<string>() }
    const lane = lanes.get(id) ?? begun
    lanes.set(id, lane)
    return lane
  }

  /** Ends the waits that the receiver at another URL caused, and those that a retry ends. */
  async function open({ id, url }: WebhookAddress, lane: Lane): Promise<void> {
    if (lane.url !== url) await writeSync('retryMessages', { webhooks: [id], only: 'delayed' })
    lane.url = url
    const retriedAt = await lastRetryOf(db, id)
    if (lane.retriedAt !== retriedAt) lane.closedUntil = 0
    lane.retriedAt = retriedAt
  }

  /** Queues the changes appended to the log since; costs two small reads for each address if there are none. */
  async function queue(): Promise<void> {
    for (const to of addresses()) {
      const { id: webhook, types, environments } = to
      const lane = laneOf(to)
      await open(to, lane)
      while (lane.queuedUpTo === null || (await latestCursor(db)) > lane.queuedUpTo) {
        const change = { webhook, types, environments, limit: MAX_PER_TRANSACTION }
        const { upTo, from } = await writeSync('queueMessages', change)
        lane.queuedUpTo = upTo
        if (from !== 'kept') log.info({ webhook, origin: originOf(to) }, BEGUN[from])
      }
    }
  }

  /** Starts all attempts that are due; the end of each one looks for the next. */
  async function sendDue(): Promise<void> {
    if (await isPaused()) return
    const now = clock()
    for (const to of addresses()) {
      const { closedUntil, underWay, ended } = laneOf(to)
      if (to.disabled || closedUntil > now) continue
      ended.clear()
      const due = await loadDueMessages(db, to.id, now, CONCURRENCY + underWay.size)
      for (const message of due) {
        const customer = customerOf(message.change)
        const isFree = underWay.size < CONCURRENCY && !underWay.has(customer) && !ended.has(customer)
        if (isFree && !isStopping) begin(to, message)
      }
    }
  }

  function begin(to: WebhookAddress, message: Message): void {
    const customer = customerOf(message.change)
    const lane = laneOf(to)
    const sent = send(to, message)
      .catch((error: unknown) => {
        // It is sent again, under the same id.
        lane.closedUntil = clock() + AFTER_FAILURE_MS
        if (error instanceof HeldBackError) return
        log.error({ err: error }, 'could not store the result of an outbound webhook message')
      })
      .finally(() => {
        lane.underWay.delete(customer)
        lane.ended.add(customer)
        loop.workNow()
      })
    lane.underWay.set(customer, sent)
  }

  /** Makes one attempt, and resolves once its result is stored. */
  async function send(to: WebhookAddress, message: Message): Promise<void> {
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
    const lane = laneOf(to)
    lane.closedUntil = Math.max(lane.closedUntil, answer.closedUntil ?? 0)
    const result = judgeAnswer(answer, message, now, random())
    const kept = message.log.slice(1 - ATTEMPTS_KEPT)
    const attempts = [...kept, { at, ms: now - at, ...shownOf(answer) }] as const
    const { queuedAt } = message
    await settle({ cursor, webhook: to.id, queuedAt, environment, customerId, log: attempts, result })
    logAttempt(to, sent.id, message, result)
  }

  function logAttempt(
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

  /** Due messages beyond the maximum start when an attempt in flight ends. */
  async function nextAt(): Promise<number | null> {
    const now = clock()
    const next: number[] = []
    for (const to of addresses()) {
      const { closedUntil } = laneOf(to)
      if (to.disabled) continue
      const at = closedUntil > now ? closedUntil : await nextMessageAfter(db, to.id, now)
      if (at !== null) next.push(at)
    }
    return next.length === 0 ? null : Math.min(...next)
  }

  async function reload(): Promise<void> {
    await queue().catch((error: unknown) => {
      log.error({ err: error }, 'could not read the messages of the outbound webhooks; retrying')
    })
    loop.wake()
  }

  await reload()
  return {
    wake: loop.wake,
    /** Resolves once the position of each new address in the change log is stored, too. */
    reload,
    /** @param environments whose messages are counted; both if omitted */
    status: (environments?: readonly Environment[]) => readWebhooks(db, addresses(), environments),
    /** Makes failed and delayed messages due now, and returns their number. */
    async retry({ target = ALL_WEBHOOKS, ...which }: RetryFilter): Promise<number> {
      const webhooks = addresses()
        .map(({ id }) => id)
        .filter((id) => target === ALL_WEBHOOKS || target === `webhook:${id}`)
      if (webhooks.length === 0) return 0
      const count = await writeSync('retryMessages', { ...which, webhooks })
      loop.wake()
      return count
    },
    async replay(filter: MessageFilter): Promise<number> {
      const count = await replay(deps, addresses(), filter)
      loop.workNow()
      return count
    },
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
    /** Starts nothing more, and waits a few seconds for attempts in flight. */
    async stop(): Promise<void> {
      isStopping = true
      const giveUp = setTimeout(() => stopping.abort(), STOP_WITHIN_MS)
      await loop.stop(STOP_WITHIN_MS)
      await Promise.all([...lanes.values()].flatMap(({ underWay }) => [...underWay.values()]))
      clearTimeout(giveUp)
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

const BEGUN: Readonly<Record<Exclude<QueuedMessages['from'], 'kept'>, string>> = {
  begun: 'the outbound webhook sends every change from now on',
  restored:
    'the store was restored with a new change log: the outbound webhook sends every change from now on',
}
