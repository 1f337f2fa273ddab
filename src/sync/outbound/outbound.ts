import type { Environment } from '../../provider/event.js'
import { latestCursor } from '../../store/changes.js'
import { MAX_PER_TRANSACTION, type RetryFilter } from '../../store/memberships.js'
import { readWebhookState, type WebhookState } from '../../store/message-counters.js'
import {
  findMessages,
  type MessageFilter,
  type MessageKey,
  type MessagePage,
} from '../../store/message-log.js'
import {
  lastRetryOf,
  loadDueMessages,
  nextMessageAfter,
  type QueuedMessages,
} from '../../store/message-queue.js'
import type { Db } from '../../store/schema.js'
import type { Tools } from '../context.js'
import { createLoop, oneAtATime } from '../loop.js'
import { createAttempts, createTests, customerOf, type Lane, newLane, type OutboundDeps } from './attempts.js'
import { originOf, type WebhookAddress } from './message.js'

/** Names all addresses among the targets of a retry; `webhook:<id>` names one. */
const ALL_WEBHOOKS = 'webhook'

/** Maximum number of messages in flight to one address, each for another customer. */
const CONCURRENCY = 8
/** A stop waits this long for attempts in flight. */
const STOP_WITHIN_MS = 3_000

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

/**
 * Sends every change of access to the merchant's URLs: to each in order per customer, at least once. Resolves once its
 * position in the change log is stored for each: every later change is sent.
 */
export async function createOutbound(deps: OutboundDeps) {
  const { db, writeSync, addresses, isPaused, clock, log } = deps
  const lanes = new Map<string, Lane>()
  const loop = createLoop({ look: queue, work: oneAtATime(sendDue), nextAt, clock, log })
  const attempts = createAttempts(deps, loop.workNow)
  const tests = createTests(deps)
  let isStopping = false

  function laneOf({ id, url }: WebhookAddress): Lane {
    const lane = lanes.get(id) ?? newLane(url)
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
      const lane = laneOf(to)
      const { closedUntil, underWay, ended } = lane
      if (to.disabled || closedUntil > now) continue
      ended.clear()
      const due = await loadDueMessages(db, to.id, now, CONCURRENCY + underWay.size)
      for (const message of due) {
        const customer = customerOf(message.change)
        const isFree = underWay.size < CONCURRENCY && !underWay.has(customer) && !ended.has(customer)
        if (isFree && !isStopping) attempts.begin(to, lane, message)
      }
    }
  }

  /** Due messages beyond the maximum start when an attempt in flight ends. */
  async function nextAt(): Promise<readonly number[]> {
    const now = clock()
    const times: number[] = []
    for (const to of addresses()) {
      const { closedUntil } = laneOf(to)
      if (to.disabled) continue
      const at = closedUntil > now ? closedUntil : await nextMessageAfter(db, to.id, now)
      if (at !== null) times.push(at)
    }
    return times
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
    ...tests,
    /** Starts nothing more, and waits a few seconds for attempts in flight. */
    async stop(): Promise<void> {
      isStopping = true
      const giveUp = setTimeout(attempts.giveUp, STOP_WITHIN_MS)
      await loop.stop(STOP_WITHIN_MS)
      await Promise.all([...lanes.values()].flatMap(({ underWay }) => [...underWay.values()]))
      clearTimeout(giveUp)
    },
  }
}

const BEGUN: Readonly<Record<Exclude<QueuedMessages['from'], 'kept'>, string>> = {
  begun: 'the outbound webhook sends every change from now on',
  restored:
    'the store was restored with a new change log: the outbound webhook sends every change from now on',
}
