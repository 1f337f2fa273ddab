import { type AccessSnapshot, formatCursor } from '../../../store/changes.js'
import type { Message } from '../../../store/messages.js'

/** The same at every attempt: by it a receiver knows what it has had. It holds no full stop, as the scheme asks. */
export function messageId({ epoch, change }: Pick<Message, 'epoch' | 'change'>): string {
  return `msg_${epoch}_${change.cursor}`
}

/** The text that is signed and sent: the same at every attempt. */
export function messageBody({ epoch, change }: Pick<Message, 'epoch' | 'change'>): string {
  const { cursor, at, environment, customerId, productId, before, after, cause } = change
  const timestamp = iso(at)
  return JSON.stringify({
    type: 'entitlement.changed',
    timestamp,
    data: {
      cursor: formatCursor(epoch, cursor),
      at: timestamp,
      environment,
      customerId,
      productId,
      before: snapshotJson(before),
      after: snapshotJson(after),
      cause: { kind: cause.kind, eventId: cause.eventId },
    },
  })
}

function snapshotJson({ active, status, since, until }: AccessSnapshot) {
  return { active, status, since: isoOrNull(since), until: isoOrNull(until) }
}

function iso(instant: number): string {
  return new Date(instant).toISOString()
}

function isoOrNull(instant: number | null): string | null {
  return instant === null ? null : iso(instant)
}
