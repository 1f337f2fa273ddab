/* Carries deliveries to their endpoints: signed at the real time, tried again while they fail. */

import { Agent, type ClientRequest, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import { EVENT_HEADER, SIGNATURE_HEADER, signBody, TIMESTAMP_HEADER } from '../provider/signature.js'
import type { Attempt, Delivery, Endpoint } from './model.js'
import type { State } from './state.js'
import type { Acting } from './world.js'

export interface CourierOptions {
  /** Real milliseconds before each further attempt of a burst. */
  readonly retryDelaysMs: readonly number[]
  readonly timeoutMs: number
  /** Epoch milliseconds: the real time, by which deliveries are signed. */
  readonly clock: () => number
}

/** By the sandbox's clock: after each failed burst, when the next one is due. After the last, the delivery is given up. */
const NEXT_BURST_MS = [5, 30, 120, 720].map((minutes) => minutes * 60_000)

/** Of one handful, each waits for the one before, so that a reader of a log sees them in order. */
const HANDFUL = 64
const SIDE_BY_SIDE = 16
const BATCH = 512

export interface Courier {
  /** Sends what may be sent by the sandbox's clock; resolves once each is delivered, or has failed for now. */
  drain(): Promise<void>
  /** Sends one at once, whatever became of it before. */
  sendNow(delivery: Delivery): Promise<Delivery>
  /** Ends what is under way; nothing is sent any more. */
  stop(): Promise<void>
}

export function createCourier(state: State, { world, act }: Acting, options: CourierOptions): Courier {
  const agents = {
    'http:': new Agent({ keepAlive: true, maxSockets: SIDE_BY_SIDE }),
    'https:': new TlsAgent({ keepAlive: true, maxSockets: SIDE_BY_SIDE }),
  }
  const underWay = new Set<ClientRequest>()
  /** Endpoints that did not take the last burst: they get single attempts until one succeeds. */
  const down = new Set<string>()
  const stopping = new AbortController()
  let draining: Promise<void> | null = null

  async function drainAll(): Promise<void> {
    while (!stopping.signal.aborted) {
      const batch = state.pendingDeliveries(world.now, BATCH)
      if (batch.length === 0) return
      const endpoints = new Map(act(() => world.list('endpoint')).map((endpoint) => [endpoint.id, endpoint]))
      const sent: Delivery[] = []
      const queue = batch.values()
      const carry = async (): Promise<void> => {
        for (const delivery of queue) {
          if (stopping.signal.aborted) return
          sent.push(await burst(delivery, endpoints.get(delivery.endpointId)))
        }
      }
      await Promise.all(Array.from({ length: batch.length > HANDFUL ? SIDE_BY_SIDE : 1 }, carry))
      act(() => {
        for (const delivery of sent) state.saveDelivery(delivery)
        state.forgetDelivered()
      })
    }
  }

  async function burst(delivery: Delivery, endpoint: Endpoint | undefined): Promise<Delivery> {
    if (endpoint === undefined) return { ...delivery, status: 'failed' }
    const attempts: Attempt[] = [...delivery.attempts]
    const delays = down.has(endpoint.id) ? [0] : [0, ...options.retryDelaysMs]
    for (const delay of delays) {
      if (delay > 0) await wait(delay, null, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return delivery
      const isDamaged = delivery.isDamaged && attempts.length === 0
      attempts.push(await attempt(endpoint, delivery, isDamaged))
      if (!isTaken(attempts.at(-1))) continue
      down.delete(endpoint.id)
      if (delivery.isDoubled) attempts.push(await attempt(endpoint, delivery, false))
      return { ...delivery, status: 'delivered', attempts }
    }
    down.add(endpoint.id)
    const next = NEXT_BURST_MS[delivery.failures]
    return {
      ...delivery,
      attempts,
      failures: delivery.failures + 1,
      ...(next === undefined ? { status: 'failed' } : { dueAt: delivery.dueAt + next }),
    }
  }

  function attempt(endpoint: Endpoint, { type, body }: Delivery, isDamaged: boolean): Promise<Attempt> {
    const at = options.clock()
    const bytes = Buffer.from(body)
    const timestamp = String(Math.floor(at / 1000))
    const signature = signBody(isDamaged ? `${endpoint.secret}?` : endpoint.secret, timestamp, bytes)
    const url = new URL(endpoint.url)
    const isTls = url.protocol === 'https:'
    return new Promise((resolve) => {
      const sent = (isTls ? tlsRequest : request)(url, {
        method: 'POST',
        agent: isTls ? agents['https:'] : agents['http:'],
        timeout: options.timeoutMs,
        headers: {
          'Content-Type': 'application/json',
          'Content-Length': bytes.length,
          [EVENT_HEADER]: type,
          [TIMESTAMP_HEADER]: timestamp,
          [SIGNATURE_HEADER]: signature,
        },
      })
      const done = (status: number | null, error: string | null): void => {
        underWay.delete(sent)
        resolve({ at, status, error })
      }
      underWay.add(sent)
      sent.on('timeout', () => sent.destroy(new Error(`no answer within ${options.timeoutMs} ms`)))
      sent.on('error', (error) => done(null, error.message))
      sent.on('response', (answer) => {
        answer.on('error', () => {})
        answer.resume().on('close', () => done(answer.statusCode ?? null, null))
      })
      sent.end(bytes)
    })
  }

  const drain = (): Promise<void> => {
    // One that is already running may have looked before the newest deliveries came.
    const before = draining ?? Promise.resolve()
    const next = before.then(drainAll).finally(() => {
      if (draining === next) draining = null
    })
    draining = next
    return next
  }

  return {
    drain,
    async sendNow(delivery) {
      const endpoint = act(() => world.find('endpoint', delivery.endpointId))
      const sent = await burst({ ...delivery, status: 'pending', isDamaged: false }, endpoint)
      const kept: Delivery = sent.status === 'delivered' ? sent : { ...sent, status: 'failed' }
      act(() => state.saveDelivery(kept))
      return kept
    },
    async stop() {
      stopping.abort()
      for (const one of underWay) one.destroy(new Error('the sandbox stops'))
      await draining?.catch(() => {})
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

function isTaken(attempt: Attempt | undefined): boolean {
  return attempt?.status != null && attempt.status >= 200 && attempt.status < 300
}
