import { LatchkeyError } from '../errors.js'
import { invalidParameter, readParameter } from './query.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendTaggedBytes } from './send-tagged.js'
import { eventNotFound, readQuestion, type StoredEventDeps } from './stored-events.js'

const PARAMETERS = ['environment', 'sha256'] as const
const SHA256_HEX = /^[0-9a-f]{64}$/

/**
 * GET /events/:eventId/body: the bytes exactly as they came, and as they were signed. `?sha256=` names another body
 * that came under the same id. Where a customer was erased, of whom it told among others, it is what is left. They are the sender's, so that no browser may take them for a page of ours.
 */
export function getEventBody(deps: StoredEventDeps): RawHandler<'eventId'> {
  const { readEvent, readEventBody } = deps.storedEvents
  return async (req, res, { eventId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, PARAMETERS)
    const sha256 = readSha256(query)
    const body = await readEventBody({ environment, eventId, sha256 })
    if (body === null) {
      const isStored = sha256 !== null && (await readEvent({ environment, eventId })) !== null
      throw isStored ? noSuchBody() : eventNotFound()
    }
    const { bytes, sha256: hash } = body
    if (bytes === null) throw new LatchkeyError('body_removed', 'The body of this event was removed.')
    sendTaggedBytes(res, hash, bytes, {
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': `attachment; filename="${fileNameOf(eventId)}"`,
    })
  }
}

function noSuchBody(): LatchkeyError {
  return new LatchkeyError('event_not_found', 'The event has no body with this SHA-256.')
}

/** An id may hold anything that is no control character; a file's name in a header may not. */
function fileNameOf(eventId: string): string {
  return `${eventId.replaceAll(/[^\w-]/g, '_')}.body`
}

function readSha256(query: URLSearchParams): string | null {
  const sha256 = readParameter(query, 'sha256')
  if (sha256 !== null && !SHA256_HEX.test(sha256)) {
    throw invalidParameter('sha256', 'is not a SHA-256 in lower-case hex')
  }
  return sha256
}
