/* Requests that are safe to repeat: the first answer is kept for a day, and given again. */

import { hash } from 'node:crypto'
import { invalidFields, ServiceError } from './codes.js'
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

interface Sent {
  readonly method: string
  readonly url: string
  readonly header: string | undefined
  readonly bytes: Uint8Array
  readonly body: unknown
}

/** The key of a request, if it has one that counts. */
export function keyOf({ idempotency }: Operation, { method, url, header, bytes, body }: Sent): Keyed | null {
  if (idempotency === 'none') return null
  const key = header ?? (idempotency === 'v2' ? keyInBody(body) : undefined)
  if (key === undefined) return null
  if (key === '' || key.length > LONGEST_KEY) {
    throw invalidFields({ field: 'Idempotency-Key', message: `must have 1 to ${LONGEST_KEY} characters` })
  }
  return {
    id: `key_${hash('sha256', `idempotency key\0${idempotency}\0${key}`)}`,
    fingerprint: hash('sha256', Buffer.concat([Buffer.from(`${method}\0${url}\0`), bytes])),
    form: idempotency,
  }
}

function keyInBody(body: unknown): string | undefined {
  const key =
    typeof body === 'object' && body !== null && 'idempotencyKey' in body ? body.idempotencyKey : undefined
  return typeof key === 'string' ? key : undefined
}

/** The answer to give again; null: the request is the first. @throws {ServiceError} `IDEMPOTENCY_KEY_CONFLICT` */
export function keptAnswer(world: World, { id, fingerprint, form }: Keyed): KeptAnswer | null {
  const kept = world.find('answer', id)
  if (kept === undefined || world.now >= kept.createdAt + DAY_MS) return null
  if (kept.fingerprint === fingerprint) return kept
  const message = 'This idempotency key came with another request before. Use a fresh one.'
  throw new ServiceError('IDEMPOTENCY_KEY_CONFLICT', message, { status: form === 'v3' ? 422 : 409 })
}

export function keepAnswer(world: World, { id, fingerprint }: Keyed, status: number, body: unknown): void {
  world.put('answer', { id, fingerprint, status, body, createdAt: world.now, updatedAt: world.now })
}

/** The first request with this key is still being worked on. */
export function inFlight({ form }: Keyed): ServiceError {
  const message = 'The first request with this key is still being worked on. Try again later.'
  return form === 'v3'
    ? new ServiceError('IDEMPOTENCY_KEY_CONFLICT', message, { status: 409 })
    : new ServiceError('IDEMPOTENCY_REQUEST_IN_PROGRESS', message)
}
