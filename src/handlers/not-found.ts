import type { IncomingMessage, ServerResponse } from 'node:http'
import { LatchkeyError } from '../errors.js'
import { problemOf } from './problem.js'
import { send } from './send.js'

/** Answers whatever no route took. */
export function routeNotFound(_req: IncomingMessage, res: ServerResponse): void {
  const { status, headers, body } = problemOf(new LatchkeyError('route_not_found', 'There is nothing here.'))
  send(res, status, headers, body)
}
