import { createHash, randomUUID } from 'node:crypto'
import type { Environment } from '../provider/event.js'
import { MANUAL_ID_PREFIX } from '../provider/ids.js'
import type { PersonKey } from '../store/schema.js'

/** The id of a change by hand that nothing else names. */
export function newActId(): string {
  return `${MANUAL_ID_PREFIX}${randomUUID().replaceAll('-', '')}`
}

/** The same for every request with this Idempotency-Key. */
export function actIdOf(environment: Environment, key: string): string {
  return idOf('act', environment, key)
}

/** The same for every request to erase this customer. */
export function erasureIdOf({ environment, customerId }: PersonKey): string {
  return idOf('erasure', environment, customerId)
}

/**
 * Stored ids of version 1.0.0. Some keys and customers share one, so it proves nothing: look at the event that has it.
 */
export function formerActIdOf(environment: Environment, key: string): string {
  return hashed(`${environment} ${key}`)
}

export function formerErasureIdOf({ environment, customerId }: PersonKey): string {
  return hashed(`${environment} erased ${customerId}`)
}

/** NUL can be in no header and no id: whatever the text, what it names has an id that nothing else has. */
function idOf(kind: 'act' | 'erasure', environment: Environment, text: string): string {
  return hashed([kind, environment, text].join('\0'))
}

function hashed(text: string): string {
  return `${MANUAL_ID_PREFIX}${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}
