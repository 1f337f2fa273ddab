/* Serves the table of operations: keys, idempotency, checks and envelopes, the same for each. */

import { hash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import express, { type ErrorRequestHandler, type Express, type Request, type Response } from 'express'
import { z } from 'zod'
import { KEY_HEADER, MAX_IDEMPOTENCY_KEY_LENGTH } from '../provider/requests.js'
import { checkoutRoutes, isSame } from './checkout.js'
import { refuse, refuseField, refuseFields, ServiceError } from './codes.js'
import { DAY_MS, type KeptAnswer } from './model.js'
import { CUSTOMER_OPERATIONS } from './operations/customers.js'
import { MERCHANT_OPERATIONS } from './operations/merchant.js'
import type { Engine, Operation } from './operations/operation.js'
import { PAYMENT_OPERATIONS, SUBSCRIPTION_OPERATIONS } from './operations/payments.js'
import { PRODUCT_OPERATIONS } from './operations/products.js'
import { PURCHASE_OPERATIONS } from './operations/purchases.js'
import { SANDBOX_OPERATIONS } from './operations/sandbox.js'
import type { World } from './world.js'

/** Everything that the sandbox serves, but for the checkout's pages. */
export const OPERATIONS: readonly Operation[] = [
  ...PRODUCT_OPERATIONS,
  ...PURCHASE_OPERATIONS,
  ...PAYMENT_OPERATIONS,
  ...SUBSCRIPTION_OPERATIONS,
  ...CUSTOMER_OPERATIONS,
  ...MERCHANT_OPERATIONS,
  ...SANDBOX_OPERATIONS,
]

export function createApp(engine: Engine, key: string): Express {
  const { world, courier, report } = engine
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.use((_req, res, next) => {
    res.setHeader('Cache-Control', 'no-store')
    next()
  })
  app.use('/checkout', checkoutRoutes(engine))
  /** The idempotency keys of requests that are being worked on. */
  const running = new Set<string>()

  async function answer(operation: Operation, req: Request, res: Response): Promise<void> {
    const params = req.params as Readonly<Record<string, string>>
    const keyed = keyOf(operation, req)
    const kept = keyed && world.act(() => keptAnswer(world, keyed))
    if (kept) {
      if (keyed.form === 'v2') res.setHeader('Idempotency-Replayed', 'true')
      return void res.status(kept.status).json(kept.body)
    }
    if (keyed && running.has(keyed.id)) {
      const code = keyed.form === 'v2' ? 'IDEMPOTENCY_REQUEST_IN_PROGRESS' : 'IDEMPOTENCY_KEY_CONFLICT'
      const message = 'The first request with this key is still being worked on. Try again later.'
      refuse(code, message, { status: 409 })
    }
    if (keyed) running.add(keyed.id)
    try {
      await answerOnRequest(world, operation)
      const given = operation.method === 'GET' ? { ...req.query } : (req.body ?? {})
      const input = validated(operation.input, given)
      const call = { ...engine, input, params, id: Object.values(params)[0] ?? '' }
      await operation.before?.(call)
      const data = world.act(() => {
        const done = operation.run(call)
        if (keyed) keepAnswer(world, keyed, operation.status, success(done))
        return done
      })
      // A person who does something waits until all have heard of it; an app is answered first.
      if (operation.generation === 'sandbox' && operation.method !== 'GET') await courier.drain()
      send(res, operation, data)
    } catch (error) {
      // What was wrong with the request itself may be put right and sent with the same key.
      const isKept = error instanceof ServiceError && error.status < 500 && error.keepsChanges
      if (keyed && isKept) world.act(() => keepAnswer(world, keyed, error.status, failure(error)))
      throw error
    } finally {
      if (keyed) running.delete(keyed.id)
    }
  }

  const checkKey = checkOf(key)
  const json = express.json({ type: () => true, strict: false, limit: '1mb' })
  for (const operation of OPERATIONS) {
    const verb = operation.method.toLowerCase() as 'get' | 'post' | 'patch' | 'delete'
    const checks = operation.generation === 'open' ? [json] : [checkKey, json]
    app[verb](operation.path, checks, async (req: Request, res: Response) => {
      try {
        await answer(operation, req, res)
      } finally {
        // In the background: the service answers first, and then sends what it has to tell.
        if (operation.method !== 'GET') courier.drain().catch(report)
      }
    })
  }
  app.use(checkKey, (req) => refuse('NOT_FOUND', `There is no operation ${req.method} ${req.path}.`))
  app.use(failureHandler(report))
  return app
}

/** @throws {ServiceError} `UNAUTHORIZED`; `ENVIRONMENT_MISMATCH` for a live key, which no sandbox should see */
const checkOf = (key: string) => (req: Request, _res: Response, next: () => void) => {
  const given = req.get(KEY_HEADER) ?? ''
  if (given.startsWith('sk_live_')) {
    refuse('ENVIRONMENT_MISMATCH', 'This is a sandbox: it takes its own sk_sandbox_ key, no live one.')
  }
  if (!isSame(given, key)) {
    refuse('UNAUTHORIZED', `The API key is invalid or missing: send it in ${KEY_HEADER}.`)
  }
  next()
}

// Requests that are safe to repeat: the first answer is kept for a day, and given again

interface Keyed {
  /** Of the kept answer: made from the key's text, so that no key can name another record. */
  readonly id: string
  /** The same for the same request. */
  readonly fingerprint: string
  readonly form: 'v3' | 'v2'
}

const IN_BODY = z.object({ idempotencyKey: z.string() })

function keyOf({ idempotency }: Operation, req: Request): Keyed | null {
  if (idempotency === 'none') return null
  const inBody = idempotency === 'v2' ? IN_BODY.safeParse(req.body).data?.idempotencyKey : undefined
  const key = req.get('Idempotency-Key') ?? inBody
  if (key === undefined) return null
  if (key === '' || key.length > MAX_IDEMPOTENCY_KEY_LENGTH) {
    refuseField('Idempotency-Key', `must have 1 to ${MAX_IDEMPOTENCY_KEY_LENGTH} characters`)
  }
  return {
    id: `key_${hash('sha256', `idempotency key\0${idempotency}\0${key}`)}`,
    fingerprint: hash('sha256', `${req.method}\0${req.path}\0${JSON.stringify(req.body)}`),
    form: idempotency,
  }
}

/** The answer to give again; null: the request is the first. @throws {ServiceError} `IDEMPOTENCY_KEY_CONFLICT` */
function keptAnswer(world: World, { id, fingerprint, form }: Keyed): KeptAnswer | null {
  const kept = world.find('answer', id)
  if (kept === undefined || world.now >= kept.createdAt + DAY_MS) return null
  if (kept.fingerprint === fingerprint) return kept
  const message = 'This idempotency key came with another request before. Use a fresh one.'
  return refuse('IDEMPOTENCY_KEY_CONFLICT', message, { status: form === 'v3' ? 422 : 409 })
}

function keepAnswer(world: World, { id, fingerprint }: Keyed, status: number, body: unknown): void {
  world.put('answer', { id, fingerprint, status, body, createdAt: world.now })
}

/** What zod says becomes the clause that follows a field's name. */
const CLAUSES = [
  [/^Invalid input: expected ([^,]+), received undefined$/, 'is required: must be $1'],
  [/^Invalid input: expected/, 'must be'],
  [/^Too small: expected \w+ to (be|have) >=?(\d+)/, 'must $1 at least $2'],
  [/^Too big: expected \w+ to (be|have) <=?(\d+)/, 'must $1 at most $2'],
  [/^Invalid option: expected one of/, 'must be one of'],
] as const

/** @throws {ServiceError} `VALIDATION_ERROR` with all that zod found wrong, by field */
function validated(schema: z.ZodType, value: unknown): unknown {
  const { data, error } = schema.safeParse(value)
  if (error === undefined) return data
  const fieldErrors = error.issues.map(({ path, message }) => ({
    field: path.join('.') || 'body',
    message: CLAUSES.reduce((text, [words, clause]) => text.replace(words, clause), message),
  }))
  return refuseFields(fieldErrors)
}

/** A refusal, or slowness, that somebody has asked for: see the faults. */
async function answerOnRequest(world: World, { method, path, generation }: Operation): Promise<void> {
  if (generation === 'sandbox' || generation === 'open') return
  const asked = world.act(() => {
    const { answers } = world.settings
    const found = answers.find(({ operation }) => operation === null || operation === `${method} ${path}`)
    if (found === undefined) return null
    const left = answers.map((one) => (one === found ? { ...one, times: one.times - 1 } : one))
    world.change({ answers: left.filter(({ times }) => times > 0) })
    return found
  })
  if (asked === null) return
  if (asked.slowMs > 0) await wait(asked.slowMs)
  if (asked.code !== null) refuse(asked.code, 'This answer was asked for: see POST /sandbox/faults.')
}

const success = (data: unknown): object => ({ success: true, data })

function failure({ code, message, data }: ServiceError): object {
  return { success: false, error: code, message, ...(data && { data }) }
}

function send(res: Response, { status, generation }: Operation, data: unknown): void {
  res.status(status)
  if (data === undefined) res.end()
  else if (Buffer.isBuffer(data)) res.type('application/pdf').send(data)
  else res.json(generation === 'open' ? data : success(data))
}

const failureHandler =
  (report: (error: unknown) => void): ErrorRequestHandler =>
  (error, _req, res, next) => {
    if (res.headersSent) return next(error)
    const refusal = refusalOf(error)
    if (refusal !== error && refusal.status === 500) report(error)
    res.status(refusal.status).json(failure(refusal))
  }

function refusalOf(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  // Express's own: a path or a body that can't be read.
  const isUnreadable = error instanceof Error && 'status' in error && Number(error.status) < 500
  const message =
    "The request can't be read: its path is broken, or its body is not JSON, too large or nested too deeply."
  // `JSON.stringify` of a body that is nested too deeply.
  if (isUnreadable || error instanceof RangeError) return new ServiceError('BAD_REQUEST', message)
  return new ServiceError('INTERNAL_SERVER_ERROR', 'The sandbox failed. Its output says why.')
}
