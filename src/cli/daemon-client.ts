import { request as httpRequest, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Config } from '../config/types.js'
import { ERROR_CODES, type Issue, isLatchkeyError, LatchkeyError } from '../errors.js'
import { socketFileOf } from '../handlers/local-access.js'
import { type DaemonOptions, loadNamedConfig } from './command.js'
import type { CliContext } from './context.js'

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
 * @throws LatchkeyError `daemon_unreachable` where none answers; else the refusal's own code and issues
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
        readReply(res)
          .then(({ status, reply }) => resolve(answerOf(status, reply)))
          .catch(reject)
      })
      req.on('error', (error) => reject(failureAtSocket(socketPath, error)))
      req.end(sent)
    })
}

async function readReply(res: IncomingMessage): Promise<{ status: number; reply: string }> {
  return { status: res.statusCode ?? 0, reply: await text(res) }
}

function askAtUrl(url: string, key: string): AskDaemon {
  return async ({ method, path, ...sending }) => {
    const { type, text: sent } = contentOf(sending)
    const response = await fetch(`${url.replace(/\/$/, '')}${path}`, {
      method,
      headers: { 'content-type': type, authorization: `Bearer ${key}` },
      redirect: 'manual',
      ...(sent === '' ? {} : { body: sent }),
    }).catch((cause: unknown) => {
      throw unreachable(url, cause)
    })
    return answerOf(response.status, await response.text())
  }
}

function contentOf({ body, content }: Pick<DaemonRequest, 'body' | 'content'>): Content {
  return content ?? { type: 'application/json', text: body === undefined ? '' : JSON.stringify(body) }
}

/** A connection that broke is no proof that nobody serves: what was asked may have been done. */
function failureAtSocket(socketPath: string, error: NodeJS.ErrnoException): LatchkeyError {
  if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') return unreachable(socketPath, error)
  return new LatchkeyError('daemon_failed', `the daemon did not answer: ${error.message}`, { cause: error })
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
