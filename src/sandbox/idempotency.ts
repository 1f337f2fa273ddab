/* Requests that are safe to repeat: the first answer is kept for a day, and given again. */

import { hash } from 'node:crypto'
import type { Request } from 'express'
import { z } from 'zod'
import { refuse, refuseField } from './codes.js'
import { DAY_MS, type KeptAnswer } from './model.js'
import type { Operation } from './operations/operation.js'
import type { World } from './world.js'

const LONGEST_KEY = 255

export interface Keyed {
  /** Of the kept answer: made from the key's text, so that no key can name another record. */
  readonly id: string
  /** The same for the same request. */
  readonly fingerprint: string
  readonly form: 'v3' | 'v2'
}

const IN_BODY = z.object({ idempotencyKey: z.string() })

/** The key of a request, if it has one that counts. */
export function keyOf({ idempotency }: Operation, req: Request): Keyed | null {
  if (idempotency === 'none') return null
  const inBody = idempotency === 'v2' ? IN_BODY.safeParse(req.body).data?.idempotencyKey : undefined
  const key = req.get('Idempotency-Key') ?? inBody
  if (key === undefined) return null
  if (key === '' || key.length > LONGEST_KEY) {
    refuseField('Idempotency-Key', `must have 1 to ${LONGEST_KEY} characters`)
  }
  return {
    id: `key_${hash('sha256', `idempotency key\0${idempotency}\0${key}`)}`,
    fingerprint: hash('sha256', `${req.method}\0${req.path}\0${JSON.stringify(req.body)}`),
    form: idempotency,
  }
}

/** The answer to give again; null: the request is the first. @throws {ServiceError} `IDEMPOTENCY_KEY_CONFLICT` */
export function keptAnswer(world: World, { id, fingerprint, form }: Keyed): KeptAnswer | null {
  const kept = world.find('answer', id)
  if (kept === undefined || world.now >= kept.createdAt + DAY_MS) return null
  if (kept.fingerprint === fingerprint) return kept
  const message = 'This idempotency key came with another request before. Use a fresh one.'
  return refuse('IDEMPOTENCY_KEY_CONFLICT', message, { status: form === 'v3' ? 422 : 409 })
}

export function keepAnswer(world: World, { id, fingerprint }: Keyed, status: number, body: unknown): void {
  world.put('answer', { id, fingerprint, status, body, createdAt: world.now, updatedAt: world.now })
}

/** The first request with this key is still being worked on. */
export function refuseInFlight({ form }: Keyed): never {
  const message = 'The first request with this key is still being worked on. Try again later.'
  if (form === 'v2') refuse('IDEMPOTENCY_REQUEST_IN_PROGRESS', message)
  refuse('IDEMPOTENCY_KEY_CONFLICT', message, { status: 409 })
}
