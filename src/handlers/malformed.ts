import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { LatchkeyError } from '../errors.js'
import { problemOf } from './problem.js'

/** Answers what never became a request, and closes the connection: its bytes can't be trusted any more. */
export function answerMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const { status, headers, body } = problemOf(failureOf(error))
  const head = Object.entries({ ...headers, 'Content-Length': Buffer.byteLength(body), Connection: 'close' })
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...head.map(([name, value]) => `${name}: ${value}`),
  ]
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

function failureOf(error: NodeJS.ErrnoException): LatchkeyError {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    ? new LatchkeyError('body_incomplete', 'The request did not arrive in time.')
    : new LatchkeyError('invalid_request', 'This is not valid HTTP.')
}
