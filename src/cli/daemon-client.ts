import { request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Config } from '../config/types.js'
import { ERROR_CODES, type Issue, isLatchkeyError, LatchkeyError } from '../errors.js'
import { socketFileOf } from '../handlers/local-access.js'
import { type DaemonOptions, loadNamedConfig } from './command.js'
import type { CliContext } from './context.js'
import { AS_ITS_USER, isOfAnotherUser, refusalText } from './system-refusal.js'

/** What is sent, and the media type that says what it is. */
interface Content {
  readonly type: string
  readonly text: string
}

/** One request to the daemon's API: `path` begins with `/` and holds its query. */
export interface DaemonRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, in place of a body. */
  readonly content?: Content
}

/**
 * Asks the daemon, and answers with what its JSON says.
 * @throws LatchkeyError `daemon_unreachable` where none answers; `daemon_failed` where the answer did not come to its
 * end; else the refusal's own code and issues
 */
export type AskDaemon = (request: DaemonRequest) => Promise<unknown>

/**
 * Has the daemon do the work that `request` asks for: the one that `--url` names, or the one that serves the
 * configured database, at its local socket. Where none does, `directly` does it, and must take the store's lock.
 */
export async function throughDaemon(
  options: DaemonOptions,
  context: CliContext,
  request: DaemonRequest,
  directly: (config: Config) => Promise<unknown>,
): Promise<unknown> {
  if (options.url !== undefined) return daemonAt(options.url, context)(request)
  const { config } = await loadNamedConfig(options, context)
  try {
    return await localDaemon(config)(request)
  } catch (error) {
    if (isLatchkeyError(error, 'daemon_unreachable')) return directly(config)
    throw error
  }
}

/** The daemon that serves the configured database. */
export function localDaemon({ database }: Config): AskDaemon {
  return askAtSocket(socketFileOf(database.file))
}

/**
 * The daemon at an address.
 * @throws LatchkeyError `usage` without a key
 */
export function daemonAt(url: string, { env }: CliContext): AskDaemon {
  const key = env.LATCHKEY_API_KEY
  if (!key) throw new LatchkeyError('usage', '--url needs an API key, in the variable LATCHKEY_API_KEY')
  return askAtUrl(url, key)
}

function askAtSocket(socketPath: string): AskDaemon {
  return ({ method, path, ...sending }) =>
    new Promise((resolve, reject) => {
      const { type, text: sent } = contentOf(sending)
      // Said outright, since Node announces no body of a DELETE by itself.
      const headers = { 'content-type': type, 'content-length': Buffer.byteLength(sent) }
      const req = httpRequest({ socketPath, method, path, headers }, (res) => {
        text(res)
          .catch((error: Error) => {
            throw brokenOff(error)
          })
          .then((reply) => resolve(answerOf(res.statusCode ?? 0, reply)))
          .catch(reject)
      })
      req.on('error', (error) => reject(failureAtSocket(socketPath, error)))
      req.end(sent)
    })
}

function askAtUrl(url: string, key: string): AskDaemon {
  return async ({ method, path, ...sending }) => {
    const { type, text: sent } = contentOf(sending)
    const failed = (error: unknown): never => {
      throw failureAtUrl(url, error)
    }
    const response = await fetch(`${url.replace(/\/$/, '')}${path}`, {
      method,
      headers: { 'content-type': type, authorization: `Bearer ${key}` },
      redirect: 'manual',
      ...(sent === '' ? {} : { body: sent }),
    }).catch(failed)
    return answerOf(response.status, await response.text().catch(failed))
  }
}

function contentOf({ body, content }: Pick<DaemonRequest, 'body' | 'content'>): Content {
  return content ?? { type: 'application/json', text: body === undefined ? '' : JSON.stringify(body) }
}

/** Only a socket at which nobody listens is proof that nobody serves. */
function failureAtSocket(socketPath: string, error: NodeJS.ErrnoException): LatchkeyError {
  if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') return unreachable(socketPath, error)
  if (error.syscall !== 'connect') return brokenOff(error)
  const todo = isOfAnotherUser(error) ? `: ${AS_ITS_USER}` : ''
  const message = `the daemon's socket ${socketPath} can't be used, ${refusalText(error)}${todo}`
  return new LatchkeyError('daemon_failed', message, { cause: error })
}

/** How `fetch` calls an exchange that ended after it had begun. */
const BROKEN_OFF: readonly unknown[] = [
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]

/** What `fetch` throws says nothing itself: its cause does. */
function failureAtUrl(url: string, error: unknown): LatchkeyError {
  const cause = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error && 'code' in cause)) return unreachable(url, error)
  return BROKEN_OFF.includes(cause.code) ? brokenOff(cause) : unreachable(url, error)
}

function brokenOff(cause: Error): LatchkeyError {
  const todo = 'what was asked of it may have been done all the same; run it again to be sure'
  return new LatchkeyError('daemon_failed', `the daemon did not answer: ${cause.message}: ${todo}`, { cause })
}

function unreachable(where: string, cause: unknown): LatchkeyError {
  return new LatchkeyError('daemon_unreachable', `no daemon answers at ${where}`, { cause })
}

function answerOf(status: number, reply: string): unknown {
  const answer = parsed(reply)
  if (status >= 200 && status < 300 && answer !== undefined) return answer
  const { code, detail, errors } = Object(answer) as { code?: unknown; detail?: unknown; errors?: Issue[] }
  const known = ERROR_CODES.find((one) => one === code)
  const said = typeof detail === 'string' ? detail : 'that is not what a daemon answers'
  throw new LatchkeyError(known ?? 'daemon_failed', `the daemon answered ${status}: ${said}`, {
    issues: errors ?? [],
  })
}

function parsed(reply: string): unknown {
  try {
    return JSON.parse(reply)
  } catch {
    return undefined
  }
}
