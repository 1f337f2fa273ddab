import type { IncomingMessage } from 'node:http'
import { LatchkeyError } from '../errors.js'

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/i

/**
 * Lets only a body through that says it is JSON, so that no page in a browser can have one sent unasked.
 *
 * @throws LatchkeyError `media_type_not_supported`.
 */
export function requireJson(req: IncomingMessage): void {
  const [mediaType = ''] = (req.headers['content-type'] ?? '').split(';')
  if (JSON_TYPE.test(mediaType.trim())) return
  throw new LatchkeyError('media_type_not_supported', 'The body must be JSON, sent as application/json.')
}
