/* The payments service on one's own machine, with a clock that can be moved. Nothing of the daemon is in it. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pLimit from 'p-limit'
import { KEY_HEADER } from '../provider/requests.js'
import { type Courier, createCourier } from './courier.js'
import { DAY_MS } from './model.js'
import { registerEndpoint } from './operations/merchant.js'
import { fallDue } from './paying.js'
import { createApp } from './server.js'
import { openWorld, type World } from './world.js'

export interface SandboxOptions {
  /** 0, the default: any free one. */
  readonly port?: number
  /** Where the clock starts, as an ISO 8601 time or epoch milliseconds; by default now. */
  readonly from?: string | number
  /** Keeps the state beyond the end; by default it is in memory. */
  readonly file?: string
  /** Ids and chance follow from it; by default 1. */
  readonly seed?: number
  /** The API key, `sk_sandbox_…`; by default a fresh one. */
  readonly key?: string
  /** Whether the service is merchant of record, and so charges VAT. */
  readonly merchantOfRecord?: boolean
  /** Where it delivers to from the start. One that is known by its address and generation gets the secret given here. */
  readonly endpoints?: readonly KnownEndpoint[]
  /** Real milliseconds between the attempts of one burst. */
  readonly retryDelaysMs?: readonly number[]
  /** Real milliseconds until a receiver that says nothing counts as failed. */
  readonly timeoutMs?: number
  /** The real time, in epoch milliseconds: deliveries are signed by it. */
  readonly clock?: () => number
  /** Hears of failures that are bugs. */
  readonly report?: (error: unknown) => void
  /** Hears that an endpoint no longer takes deliveries, and why; null: it takes them again. */
  readonly onEndpoint?: (url: string, problem: string | null) => void
}

export interface KnownEndpoint {
  readonly url: string
  readonly secret: string
  readonly generation: 'v3' | 'v2'
}

export interface Sandbox {
  /** `http://127.0.0.1:4690` */
  readonly url: string
  readonly key: string
  /** By a duration such as `30d`, or to an instant. Resolves once all that fell due is done and delivered, or given up. */
  advance(by: string | { readonly to: string | number }): Promise<void>
  /** What a buyer does at checkout: the body of `POST /sandbox/payments/:id/pay`. Answers with the payment. */
  pay(paymentId: string, how?: object): Promise<Record<string, unknown>>
  /** Sets faults, as `POST /sandbox/faults` does; null ends them all. */
  faults(faults: object | null): Promise<void>
  /** Who has access to what; by default now. */
  truth(at?: string | number): Promise<readonly { readonly customerId: string; readonly productId: string }[]>
  stop(): Promise<void>
}

const HOST = '127.0.0.1'
/** So many due things, or a day of them, are done in one transaction. */
const STEP = 500

/** Starts a sandbox in this process. If it rejects, it leaves nothing open. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { clock = Date.now, seed = 1, merchantOfRecord = false, report = () => {} } = options
  const { onEndpoint = () => {}, retryDelaysMs = [100, 400, 1_500], timeoutMs = 5_000 } = options
  const key = options.key ?? `sk_sandbox_${randomBytes(18).toString('hex')}`
  if (!key.startsWith('sk_sandbox_')) throw new RangeError('The key of a sandbox begins with sk_sandbox_.')
  const now = new Date(options.from ?? clock()).getTime()
  if (Number.isNaN(now)) throw new RangeError(`Not an instant: ${options.from}`)
  const first = { seed, now, changedAt: now - 1, made: 0, merchantOfRecord, faults: [], answers: [] }
  const world = openWorld(options.file ?? null, first)
  try {
    const courier = createCourier(world, { retryDelaysMs, timeoutMs, clock, onEndpoint })
    world.act(() => {
      for (const one of options.endpoints ?? []) knowEndpoint(world, one)
    })
    const inTurn = pLimit(1)
    const advanceTo = (to: number) => inTurn(() => advance(world, courier, to))
    let url = ''
    const engine = { world, courier, advance: advanceTo, baseUrl: () => url, report }
    const server = createServer(createApp(engine, key))
    server.listen(options.port ?? 0, HOST)
    await once(server, 'listening')
    url = `http://${HOST}:${(server.address() as AddressInfo).port}`
    courier.drain().catch(report)

    const end = async (): Promise<void> => {
      const closed = once(server, 'close')
      server.close()
      await courier.stop()
      server.closeAllConnections()
      await closed
      world.close()
    }
    let ended: Promise<void> | null = null
    return {
      url,
      key,
      ...client(url, key),
      stop() {
        ended ??= end()
        return ended
      },
    }
  } catch (error) {
    world.close()
    throw error
  }
}

function knowEndpoint(world: World, { url, secret, generation }: KnownEndpoint): void {
  const known = world.endpoints().find((one) => one.url === url && one.generation === generation)
  if (known === undefined) registerEndpoint(world, { url, secret, generation })
  else if (known.secret !== secret) world.update('endpoint', known, { secret })
}

async function advance(world: World, courier: Courier, to: number): Promise<void> {
  while (world.act(() => step(world, to))) {
    await courier.drain()
    // Requests get their turn, too.
    await nextTurn()
  }
  await courier.drain()
}

/** Does the next few due things. @returns whether there may be more */
function step(world: World, to: number): boolean {
  let due = world.nextDue(to)
  const end = (due?.dueAt ?? to) + DAY_MS
  for (let done = 0; due?.dueAt && due.dueAt < end; done += 1) {
    if (done === STEP) return true
    fallDue(world, due)
    due = world.nextDue(to)
  }
  if (due === undefined) world.moveTo(to)
  return due !== undefined
}

/** Asks over HTTP, like everyone else: what holds for an app holds for a test. */
function client(url: string, key: string): Omit<Sandbox, 'url' | 'key' | 'stop'> {
  async function ask(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const headers = { [KEY_HEADER]: key, 'Content-Type': 'application/json' }
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const answer = await fetch(`${url}/sandbox${path}`, sent)
    const { data, message } = (await answer.json()) as { data: Record<string, unknown>; message?: string }
    if (!answer.ok) throw new Error(`${method} /sandbox${path}: ${message} ${JSON.stringify(data ?? {})}`)
    return data
  }
  const text = (instant: string | number): string => new Date(instant).toISOString()
  return {
    async advance(by) {
      await ask('POST', '/clock/advance', typeof by === 'string' ? { by } : { to: text(by.to) })
    },
    pay: (paymentId, how = {}) => ask('POST', `/payments/${encodeURIComponent(paymentId)}/pay`, how),
    async faults(faults) {
      await (faults === null ? ask('DELETE', '/faults') : ask('POST', '/faults', faults))
    },
    async truth(at) {
      const query = at === undefined ? '' : `?at=${encodeURIComponent(text(at))}`
      const { access } = await ask('GET', `/truth${query}`)
      return access as Awaited<ReturnType<Sandbox['truth']>>
    },
  }
}
