import type { ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { problemOf } from './problem.js'
import { send } from './send.js'

/** Answers a failed request as problem+json. What is not shown to the caller is logged. */
export function answerFailure(res: ServerResponse, error: unknown, log: Logger): void {
  const { status, headers, body, expected } = problemOf(error)
  const request = { method: res.req.method, url: res.req.url, err: error }
  if (!expected) log.error(request, 'a request failed by a bug')
  else if (status >= 500) log.warn(request, 'a request could not be served')

  if (res.headersSent) res.destroy()
  else send(res, status, headers, body)
}
