/* Carries deliveries to their endpoints: signed at the real time, tried again while they fail. */

import { setTimeout as wait } from 'node:timers/promises'
import pLimit from 'p-limit'
import { Agent, request } from 'undici'
import { EVENT_HEADER, SIGNATURE_HEADER, signBody, TIMESTAMP_HEADER } from '../provider/signature.js'
import type { Delivery, Endpoint } from './model.js'
import type { World } from './world.js'

/** By the sandbox's clock: after each failed burst, when the next one is due. After the last, the delivery is given up. */
const NEXT_BURST_MS = [5, 30, 120, 720].map((minutes) => minutes * 60_000)

/** Of one handful, each waits for the one before, so that a reader of a log sees them in order. */
const HANDFUL = 64
const SIDE_BY_SIDE = 16
const BATCH = 512

interface CourierOptions {
  readonly retryDelaysMs: readonly number[]
  readonly timeoutMs: number
  readonly clock: () => number
  readonly onEndpoint: (url: string, problem: string | null) => void
}

export type Courier = ReturnType<typeof createCourier>

type Attempt = Delivery['attempts'][number]

export function createCourier(world: World, options: CourierOptions) {
  const { retryDelaysMs, timeoutMs, clock, onEndpoint } = options
  const timeouts = { connectTimeout: timeoutMs, headersTimeout: timeoutMs, bodyTimeout: timeoutMs }
  const agent = new Agent({ ...timeouts, connections: SIDE_BY_SIDE })
  /** Endpoints that did not take the last burst: they get single attempts until one succeeds. */
  const down = new Set<string>()
  const stopping = new AbortController()
  /** One drain at a time: one that is running may have looked before the newest deliveries came. */
  const inTurn = pLimit(1)

  async function drainAll(): Promise<void> {
    while (!stopping.signal.aborted) {
      const batch = world.pending(BATCH)
      if (batch.length === 0) return
      const atOnce = pLimit(batch.length > HANDFUL ? SIDE_BY_SIDE : 1)
      const sent = await atOnce.map(batch, burst)
      world.act(() => {
        for (const delivery of sent) world.put('delivery', delivery)
        world.forgetDelivered()
      })
    }
  }

  async function burst(delivery: Delivery): Promise<Delivery> {
    const endpoint = world.endpoints().find(({ id }) => id === delivery.endpointId)
    if (endpoint === undefined) return { ...delivery, status: 'failed' }
    const attempts: Attempt[] = [...delivery.attempts]
    for (const delay of down.has(endpoint.id) ? [0] : [0, ...retryDelaysMs]) {
      if (delay > 0) await wait(delay, null, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return delivery
      const isDamaged = delivery.isDamaged && attempts.length === 0
      const last = await attempt(endpoint, delivery, isDamaged)
      attempts.push(last)
      if (last.status === null || last.status < 200 || last.status > 299) continue
      if (down.delete(endpoint.id)) onEndpoint(endpoint.url, null)
      if (delivery.isDoubled) attempts.push(await attempt(endpoint, delivery, false))
      return { ...delivery, status: 'delivered', attempts }
    }
    const { status, error } = attempts.at(-1) ?? { status: null, error: null }
    if (!down.has(endpoint.id)) onEndpoint(endpoint.url, error ?? `it answered ${status}`)
    down.add(endpoint.id)
    const failed = { ...delivery, attempts, failures: delivery.failures + 1 }
    const next = NEXT_BURST_MS[delivery.failures]
    if (next === undefined) return { ...failed, status: 'failed' }
    const dueAt = delivery.dueAt + next
    return { ...failed, dueAt, place: Math.max(delivery.place, dueAt) }
  }

  async function attempt(endpoint: Endpoint, delivery: Delivery, isDamaged: boolean): Promise<Attempt> {
    const { url, secret } = endpoint
    const at = clock()
    const body = Buffer.from(delivery.event)
    const timestamp = String(Math.floor(at / 1000))
    const headers = {
      'content-type': 'application/json',
      [EVENT_HEADER]: delivery.type,
      [TIMESTAMP_HEADER]: timestamp,
      [SIGNATURE_HEADER]: signBody(isDamaged ? `${secret}?` : secret, timestamp, body),
    }
    try {
      const answer = await request(url, { method: 'POST', dispatcher: agent, headers, body })
      await answer.body.dump().catch(() => {})
      return { at, status: answer.statusCode, error: null }
    } catch (error) {
      return { at, status: null, error: failureText(error) }
    }
  }

  function failureText(error: unknown): string {
    if (!(error instanceof Error)) return String(error)
    const code = 'code' in error ? String(error.code) : ''
    return code.endsWith('_TIMEOUT') ? `no answer within ${timeoutMs} ms` : error.message || code
  }

  return {
    /** Sends what may be sent by the sandbox's clock; resolves once each is delivered, or has failed for now. */
    drain: (): Promise<void> => inTurn(drainAll),
    /** Sends one at once, whatever became of it before. */
    async sendNow(delivery: Delivery): Promise<Delivery> {
      const sent = await burst({ ...delivery, status: 'pending', isDamaged: false })
      const kept: Delivery = sent.status === 'delivered' ? sent : { ...sent, status: 'failed' }
      return world.act(() => world.put('delivery', kept))
    },
    /** Ends what is under way; nothing is sent any more. */
    async stop(): Promise<void> {
      stopping.abort()
      await agent.destroy(new Error('the sandbox stops'))
      await inTurn(() => {})
    },
  }
}
