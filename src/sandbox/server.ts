/* Serves the table of operations: keys, idempotency, checks and envelopes, the same for each. */

import { createHash, timingSafeEqual } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import express, { type ErrorRequestHandler, type Express, type Request, type Response } from 'express'
import { checkoutRoutes } from './checkout.js'
import { isCode, ServiceError } from './codes.js'
import { inFlight, keepAnswer, keptAnswer, keyOf } from './idempotency.js'
import { CUSTOMER_OPERATIONS } from './operations/customers.js'
import { MERCHANT_OPERATIONS } from './operations/merchant.js'
import { type Engine, type Operation, validated } from './operations/operation.js'
import { PAYMENT_OPERATIONS } from './operations/payments.js'
import { PRODUCT_OPERATIONS } from './operations/products.js'
import { SANDBOX_OPERATIONS } from './operations/sandbox.js'
import { SUBSCRIPTION_OPERATIONS } from './operations/subscriptions.js'
import type { World } from './world.js'

const KEY_HEADER = 'X-Service-Api-Key'
const BODY_LIMIT = '1mb'

/** Everything that the sandbox serves, but for the checkout's pages. */
export const OPERATIONS: readonly Operation[] = [
  ...PRODUCT_OPERATIONS,
  ...PAYMENT_OPERATIONS,
  ...SUBSCRIPTION_OPERATIONS,
  ...CUSTOMER_OPERATIONS,
  ...MERCHANT_OPERATIONS,
  ...SANDBOX_OPERATIONS,
]

export interface ServerDeps {
  readonly engine: Engine
  readonly key: string
  /** Where the sandbox is reached; known once it listens. */
  readonly baseUrl: () => string
  /** Hears of failures that are bugs. */
  readonly report: (error: unknown) => void
}

export function createApp({ engine, key, baseUrl, report }: ServerDeps): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.use((_req, res, next) => {
    res.setHeader('Cache-Control', 'no-store')
    next()
  })
  app.use('/checkout', checkoutRoutes(engine, baseUrl))
  app.use(express.raw({ type: () => true, limit: BODY_LIMIT }))
  /** The idempotency keys of requests that are being worked on. */
  const running = new Set<string>()
  for (const operation of OPERATIONS) {
    const verb = operation.method.toLowerCase() as 'get' | 'post' | 'patch' | 'delete'
    app[verb](operation.path, async (req, res) => {
      if (operation.generation !== 'open') assertKey(req, key)
      try {
        await answer({ engine, operation, req, res, running, baseUrl: baseUrl() })
      } finally {
        // In the background: the service answers first, and then sends what it has to tell.
        if (operation.method !== 'GET') engine.courier.drain().catch(report)
      }
    })
  }
  app.use((req) => {
    assertKey(req, key)
    throw new ServiceError('NOT_FOUND', `There is no operation ${req.method} ${req.path}.`)
  })
  app.use(failureHandler(report))
  return app
}

/** @throws {ServiceError} `UNAUTHORIZED`; `ENVIRONMENT_MISMATCH` for a live key, which no sandbox should see */
function assertKey(req: Request, key: string): void {
  const given = req.get(KEY_HEADER) ?? ''
  if (given.startsWith('sk_live_')) {
    throw new ServiceError(
      'ENVIRONMENT_MISMATCH',
      'This is a sandbox: it takes its own sk_sandbox_ key, no live one.',
    )
  }
  const digest = (text: string) => createHash('sha256').update(text).digest()
  if (!timingSafeEqual(digest(given), digest(key))) {
    throw new ServiceError('UNAUTHORIZED', `The API key is invalid or missing: send it in ${KEY_HEADER}.`)
  }
}

interface Exchange {
  readonly engine: Engine
  readonly operation: Operation
  readonly req: Request
  readonly res: Response
  readonly running: Set<string>
  readonly baseUrl: string
}

async function answer({ engine, operation, req, res, running, baseUrl }: Exchange): Promise<void> {
  const bytes = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0)
  const json = parsed(bytes)
  const header = req.get('Idempotency-Key')
  const keyed = keyOf(operation, { method: req.method, url: req.path, header, bytes, body: json })
  const kept = keyed && engine.act((world) => keptAnswer(world, keyed))
  if (kept) {
    if (keyed.form === 'v2') res.setHeader('Idempotency-Replayed', 'true')
    res.status(kept.status)
    return void (kept.status === 204 ? res.end() : res.json(kept.body))
  }
  if (keyed && running.has(keyed.id)) throw inFlight(keyed)
  if (keyed) running.add(keyed.id)
  try {
    await answerOnRequest(engine, operation)
    const body = validated(operation.body, json)
    const query = validated(operation.query, { ...req.query })
    const params = req.params as Readonly<Record<string, string>>
    const keep = (world: World, data: unknown): void => {
      if (keyed) keepAnswer(world, keyed, operation.status, success(data))
    }
    const data = await operation.run(engine, { params, body, query, baseUrl }, keep)
    sendSuccess(res, operation, data)
  } catch (error) {
    // What was wrong with the request itself may be put right and sent with the same key.
    const isKept = error instanceof ServiceError && error.status < 500 && error.keepsChanges
    if (keyed && isKept) engine.act((world) => keepAnswer(world, keyed, error.status, failure(error)))
    throw error
  } finally {
    if (keyed) running.delete(keyed.id)
  }
}

function parsed(bytes: Buffer): unknown {
  if (bytes.length === 0) return {}
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new ServiceError('BAD_REQUEST', 'The body is not JSON.')
  }
}

/** A refusal, or slowness, that somebody has asked for: see the faults. */
async function answerOnRequest({ act }: Engine, { method, path, generation }: Operation): Promise<void> {
  if (generation === 'sandbox' || generation === 'open') return
  const asked = act((world) => {
    const { answers } = world.settings
    const found = answers.find(({ operation }) => operation === null || operation === `${method} ${path}`)
    if (found === undefined) return null
    const left = answers.map((one) => (one === found ? { ...one, times: one.times - 1 } : one))
    world.change({ answers: left.filter(({ times }) => times > 0) })
    return found
  })
  if (asked === null) return
  if (asked.slowMs > 0) await wait(asked.slowMs)
  if (asked.code !== null && isCode(asked.code)) {
    throw new ServiceError(asked.code, 'This answer was asked for: see POST /sandbox/faults.')
  }
}

const success = (data: unknown): object => ({ success: true, data })
const failure = ({ code, message, data }: ServiceError): object => ({
  success: false,
  error: code,
  message,
  ...(data && { data }),
})

function sendSuccess(res: Response, { status, form }: Operation, data: unknown): void {
  res.status(status)
  if (status === 204) return void res.end()
  switch (form) {
    case 'envelope':
      return void res.json(success(data))
    case 'json':
      return void res.json(data)
    case 'pdf':
      return void res.type('application/pdf').send(data)
    default:
      form satisfies never
  }
}

const failureHandler =
  (report: (error: unknown) => void): ErrorRequestHandler =>
  (error, _req, res, next) => {
    if (res.headersSent) return next(error)
    const refusal = refusalOf(error)
    if (refusal.code === 'INTERNAL_SERVER_ERROR' && !(error instanceof ServiceError)) report(error)
    res.status(refusal.status).json(failure(refusal))
  }

function refusalOf(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  // Express's own: a path or a body that can't be read.
  const status = error instanceof Error && 'status' in error ? error.status : 500
  if (typeof status === 'number' && status < 500) {
    return new ServiceError(
      'BAD_REQUEST',
      "The request can't be read: its path or its body is broken or too large.",
    )
  }
  return new ServiceError('INTERNAL_SERVER_ERROR', 'The sandbox failed. Its output says why.')
}
