import type { ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { isLatchkeyError } from '../errors.js'
import { problemOf } from './problem.js'
import { NO_ROOM } from './read-body.js'
import { send } from './send.js'

/** Answers a failed request as problem+json. What is not shown to the caller is logged. */
export function answerFailure(res: ServerResponse, error: unknown, log: Logger): void {
  const { status, headers, body, expected } = problemOf(error)
  const request = { method: res.req.method, url: res.req.url, ...loggedOf(error) }
  if (!expected) log.error(request, 'a request failed by a bug')
  else if (status >= 500 && error !== NO_ROOM) log.warn(request, 'a request could not be served')

  if (res.headersSent) res.destroy()
  else send(res, status, headers, body)
}

/** Of an expected failure that has no cause the code and the message say all, and a stack nothing. */
function loggedOf(error: unknown): Readonly<Record<string, unknown>> {
  if (!isLatchkeyError(error) || error.cause !== undefined) return { err: error }
  return { code: error.code, reason: error.message }
}
