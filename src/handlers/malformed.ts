import { maxHeaderSize, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { LatchkeyError } from '../errors.js'
import { problemOf } from './problem.js'

/**
 * Answers what never became a request, and closes the connection: its bytes can't be trusted any more. Whole requests
 * that came before it on the connection get their answers first.
 *
 * @param underWay the answers that are not sent yet, of all connections
 */
export function createAnswerMalformed(underWay: ReadonlySet<ServerResponse>) {
  const seen = new WeakSet<Duplex>()

  return async (error: NodeJS.ErrnoException, socket: Duplex): Promise<void> => {
    // Node tells again of every later chunk.
    if (seen.has(socket)) return
    seen.add(socket)
    socket.pause()
    const answers = [...underWay].filter(({ req }) => req.socket === socket)
    const own = answers.find(({ req }) => !req.complete)
    const before = answers.filter((one) => one !== own)
    await Promise.all(before.map((one) => new Promise((resolve) => one.once('close', resolve))))
    if (socket.writable && !own?.headersSent) socket.write(answerTo(error))
    socket.end(() => socket.destroy())
  }
}

function answerTo(error: NodeJS.ErrnoException): string {
  const { status, headers, body } = problemOf(failureOf(error))
  const head = Object.entries({ ...headers, 'Content-Length': Buffer.byteLength(body), Connection: 'close' })
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...head.map(([name, value]) => `${name}: ${value}`),
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

function failureOf(error: NodeJS.ErrnoException): LatchkeyError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new LatchkeyError('body_incomplete', 'The request did not arrive in time.')
    case 'HPE_HEADER_OVERFLOW':
      return new LatchkeyError(
        'headers_too_large',
        `The path and the headers are over ${maxHeaderSize} bytes.`,
      )
    default:
      return new LatchkeyError('invalid_request', 'This is not valid HTTP.')
  }
}
