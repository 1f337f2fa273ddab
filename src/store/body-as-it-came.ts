import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { LatchkeyError } from '../errors.js'
import type { EventsTable } from './schema.js'

type StoredBytes = Pick<Selectable<EventsTable>, 'body' | 'body_sha256' | 'body_removed'>

/**
 * Whether a body that should be there byte for byte is not: a disk or a hand has changed the database. Nobody signed
 * what is there now, so that it is given to nobody and read by nothing.
 */
export function isAltered({ body, body_sha256: sha256, body_removed: removed }: StoredBytes): boolean {
  return removed === null && (body === null || sha256Of(body) !== sha256)
}

/** As it is stored beside every body, in lower-case hex. */
export function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

export function bodyAltered(eventId: string): LatchkeyError {
  return new LatchkeyError(
    'body_altered',
    `The database does not hold the body of ${eventId} as it came any more: a backup from before it was altered does.`,
  )
}
