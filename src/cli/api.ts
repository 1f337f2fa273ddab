import { mkdtempSync, rmSync } from 'node:fs'
import type { RequestOptions } from 'node:http'
import { request as overHttps } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { urlToHttpOptions } from 'node:url'
import type { Config } from '../config/schema.js'
import { ERROR_CODES, type Issue, isLatchkeyError, LatchkeyError } from '../errors.js'
import { MAX_SOCKET_PATH_BYTES, socketFileOf } from '../handlers/api-key.js'
import { http } from '../node-http.js'
import { isDatabaseThere, missingDatabase } from '../operations/assert-database.js'
import type { Environment } from '../provider/event.js'
import { AS_ITS_USER, isOfAnotherUser, refusalText } from '../system-refusal.js'
import {
  type CliContext,
  databaseFileIn,
  defaultEnvironment,
  loadNamedConfig,
  type SharedOptions,
} from './context.js'

/** How a command finds the API. */
export interface ApiOptions extends SharedOptions {
  readonly url?: string | undefined
  readonly environment?: Environment | undefined
}

/** Undefined and null values are not sent. */
type Query = Readonly<Record<string, string | number | boolean | null | undefined>>
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export interface ApiRequest {
  readonly query?: Query
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, instead of a JSON body. */
  readonly content?: { readonly type: string; readonly text: string | Buffer }
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * The HTTP API of a daemon. Every request may reject with `daemon_unreachable` if nothing answers any more, with
 * `daemon_failed` if an answer is cut off, and with the code and issues of a refusal.
 */
export interface Api {
  /** The config of the daemon that serves the configured database; null: `--url` names another daemon. */
  readonly config: Config | null
  /** True if no daemon runs, and one inside this command answers. */
  readonly isWithin: boolean
  /** From the options, or else from the config; undefined: the API chooses. */
  readonly environment: Environment | undefined
  get<Answer>(path: string, query?: Query): Promise<Answer>
  getBytes(path: string, query?: Query): Promise<Buffer>
  send<Answer>(method: Exclude<Method, 'GET'>, path: string, request?: ApiRequest): Promise<Answer>
}

/**
 * What to do if no daemon runs. `database`: work on the database, which must exist. `new database`: create a missing
 * one. `any database`: if it is missing, work on an empty temporary one.
 */
export type WhereNone = 'database' | 'new database' | 'any database' | { readonly needsDaemon: string }

/**
 * Calls `use` with the API: of the daemon at `--url`; of the one that serves the configured database, at its local
 * socket; or, if there is none, of one that is started inside this command and ends with it.
 * @throws {LatchkeyError} `usage` for a wrong address, or without a key; `store_missing`, `store_in_use`
 */
export async function withApi<T>(
  options: ApiOptions,
  context: CliContext,
  use: (api: Api) => Promise<T>,
  whereNone: WhereNone = 'database',
): Promise<T> {
  const { url, environment } = options
  if (url !== undefined)
    return use(createApi(transportToUrl(url, context), { config: null, isWithin: false, environment }))
  const config = await loadNamedConfig(options, context).then(
    (loaded) => loaded.config,
    (error: unknown) => ({ error }),
  )
  if ('error' in config) {
    // A running daemon is there all the same, and a file that it can't read again is a reason to ask it.
    const socketPath = socketFileOf(databaseFileIn(options, context))
    if (typeof whereNone !== 'object' || !(await isListening(socketPath))) throw config.error
    return use(createApi(transportToSocket(socketPath), { config: null, isWithin: false, environment }))
  }
  const known = { config, environment: environment ?? defaultEnvironment(config.endpoints) }
  const socketPath = socketFileOf(config.database.file)
  for (let left = ATTEMPTS; ; left -= 1) {
    if (await isListening(socketPath))
      return use(createApi(transportToSocket(socketPath), { ...known, isWithin: false }))
    let within: Within
    try {
      within = await startWithin(config, context, whereNone)
    } catch (error) {
      if (left === 1 || !isLatchkeyError(error, 'store_in_use')) throw error
      await wait(WAIT_MS)
      continue
    }
    return within((transport) => use(createApi(transport, { ...known, isWithin: true })))
  }
}

/** Another command may hold the database, or a daemon may be starting: the command retries this often. */
const ATTEMPTS = 10
const WAIT_MS = 200

/** The API of the daemon that serves the configured database. */
export function localApi(config: Config): Api {
  return apiAtSocket(socketFileOf(config.database.file), { config })
}

/** The API of the daemon that listens on this local socket. @param options `signal` ends requests under way */
export function apiAtSocket(
  socketPath: string,
  { config = null, signal }: { readonly config?: Config | null; readonly signal?: AbortSignal } = {},
): Api {
  const transport = transportToSocket(socketPath)
  const options = { ...transport.options, ...(signal && { signal }) }
  return createApi({ ...transport, options }, { config, isWithin: false, environment: undefined })
}

/** For the routes at an address that need no key. */
export function keylessApi(url: string): Api {
  return createApi(transportToAddress(url, {}), { config: null, isWithin: false, environment: undefined })
}

/** Where requests go, and how their failures are reported. */
interface Transport {
  readonly request: typeof http.request
  readonly options: RequestOptions
  /** The prefix of every path. */
  readonly prefix: string
  /** The prefix of the daemon's message in a refusal. */
  readonly intro: (status: number) => string
  readonly failed: (error: NodeJS.ErrnoException) => unknown
}

function createApi(transport: Transport, known: Pick<Api, 'config' | 'isWithin' | 'environment'>): Api {
  async function exchange(method: Method, path: string, request: ApiRequest): Promise<Buffer> {
    const { status, body } = await ask(transport, method, path, request)
    if (status < 200 || status >= 300) throw refusal(transport, status, parsed(body))
    return body
  }
  async function answer<Answer>(method: Method, path: string, request: ApiRequest): Promise<Answer> {
    const body = parsed(await exchange(method, path, request))
    if (body === undefined) throw refusal(transport, 200, body)
    return body as Answer
  }
  return {
    ...known,
    get: (path, query = {}) => answer('GET', path, { query }),
    getBytes: (path, query = {}) => exchange('GET', path, { query }),
    send: (method, path, request = {}) => answer(method, path, request),
  }
}

function ask(
  { request, options, prefix, failed }: Transport,
  method: Method,
  path: string,
  { query = {}, body: json, content, headers: own }: ApiRequest,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  const given = Object.entries(query).flatMap(([name, one]) =>
    one === undefined || one === null ? [] : [[name, String(one)] as [string, string]],
  )
  const asked = `${prefix}${path}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`
  const text = content?.text ?? (json === undefined ? '' : JSON.stringify(json))
  // The length is set explicitly: Node sends none for the body of a DELETE.
  const headers = {
    ...options.headers,
    ...own,
    'content-type': content?.type ?? 'application/json',
    'content-length': Buffer.byteLength(text),
  }
  return new Promise((resolve, reject) => {
    const req = request({ ...options, method, path: asked, headers }, (res) => {
      buffer(res).then(
        (body) => resolve({ status: res.statusCode ?? 0, body }),
        (error: Error) => reject(brokenOff(error)),
      )
    })
    req.on('error', (error) => reject(failed(error)))
    req.end(text)
  })
}

function refusal({ intro }: Transport, status: number, answer: unknown): LatchkeyError {
  const { code, detail, errors } = Object(answer) as { code?: unknown; detail?: unknown; errors?: Issue[] }
  const said = typeof detail === 'string' ? detail : 'is this address a Latchkey daemon?'
  const issues = errors ?? []
  // The daemon refused a value that the user gave to this command.
  if (code === 'invalid_request') return new LatchkeyError('usage', said, { issues })
  const known = ERROR_CODES.find((one) => one === code)
  return new LatchkeyError(known ?? 'daemon_failed', `${intro(status)}${said}`, { issues })
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

const answered = (status: number) => `the daemon answered ${status}: `

function transportToUrl(url: string, { env }: CliContext): Transport {
  const key = env.LATCHKEY_API_KEY
  if (!key) throw new LatchkeyError('usage', '--url needs an API key, in the variable LATCHKEY_API_KEY')
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw new LatchkeyError('usage', '--url must be an http address, such as http://127.0.0.1:4680')
  }
  return transportToAddress(url, { authorization: `Bearer ${key}` })
}

function transportToAddress(url: string, headers: Readonly<Record<string, string>>): Transport {
  const base = new URL(url)
  return {
    request: base.protocol === 'https:' ? overHttps : http.request,
    options: { ...urlToHttpOptions(base), headers },
    prefix: base.pathname.replace(/\/$/, ''),
    intro: answered,
    // Whether the exchange ended after it had begun.
    failed: (error) =>
      /^(ECONNRESET$|EPIPE$|HPE_)/.test(error.code ?? '') ? brokenOff(error) : unreachable(url, error),
  }
}

function transportToSocket(socketPath: string): Transport {
  return {
    request: http.request,
    options: { socketPath },
    prefix: '',
    intro: answered,
    failed: (error) => (isNobody(error) ? unreachable(socketPath, error) : brokenOff(error)),
  }
}

/** Only a socket that nobody listens on proves that no daemon serves the database. */
function isNobody({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ENOENT' || code === 'ECONNREFUSED'
}

function brokenOff(cause: Error): LatchkeyError {
  const todo = 'it may have done the work all the same; run the command again to be sure'
  return new LatchkeyError('daemon_failed', `the daemon did not answer: ${cause.message}: ${todo}`, { cause })
}

function unreachable(where: string, cause: unknown): LatchkeyError {
  return new LatchkeyError(
    'daemon_unreachable',
    `no daemon answers at ${where}: start one with \`latchkey serve\``,
    { cause },
  )
}

/** The error for a socket that can't exist: its path is too long or leads through a file. */
const IMPOSSIBLE: readonly unknown[] = ['ENAMETOOLONG', 'EINVAL', 'ENOTDIR']

/** @throws {LatchkeyError} `daemon_failed` if it can't be found out */
export function isListening(socketPath: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (isNobody(error) || IMPOSSIBLE.includes(error.code)) return resolve(false)
      const todo = isOfAnotherUser(error) ? `: ${AS_ITS_USER}, or name the daemon with --url` : ''
      const message = `the daemon's socket ${socketPath} can't be used, ${refusalText(error)}${todo}`
      reject(new LatchkeyError('daemon_failed', message, { cause: error }))
    })
  })
}

/** A daemon inside this command, which ends once `work` is done. */
type Within = <T>(work: (transport: Transport) => Promise<T>) => Promise<T>

async function startWithin(
  config: Config,
  { now: clock }: CliContext,
  whereNone: WhereNone,
): Promise<Within> {
  const { file } = config.database
  if (typeof whereNone === 'object') {
    const socket = socketFileOf(file)
    const { isStoreServed } = await import('../store/sqlite/file.js')
    const isTooLong = Buffer.byteLength(socket) > MAX_SOCKET_PATH_BYTES
    const message = isTooLong
      ? `the path of ${socket} is too long for a socket: name the daemon with --url`
      : isStoreServed(file)
        ? `a process holds the database ${file}, and does not answer at ${socket}: it is starting or stopping`
        : `${whereNone.needsDaemon}; it was looked for at ${socket}, and --url names one elsewhere`
    throw new LatchkeyError('daemon_unreachable', message)
  }
  // A database elsewhere is found out about as it is opened.
  const isThere = config.database.postgres !== undefined || isDatabaseThere(file, 'write')
  if (!isThere && whereNone === 'database') throw missingDatabase(file)
  const scratch = isThere || whereNone !== 'any database' ? null : mkdtempSync(join(tmpdir(), 'latchkey-'))
  const database = { ...config.database, file: scratch === null ? file : join(scratch, 'latchkey.db') }
  const remove = (): void => {
    if (scratch !== null) rmSync(scratch, { recursive: true, force: true })
  }
  const { createLogger } = await import('../log.js')
  const { startDaemon } = await import('../daemon.js')
  /** The last line that the daemon would have logged. */
  let logged: string | null = null
  const log = createLogger('error', {
    write(line) {
      logged = (JSON.parse(line) as { err?: { message?: string } }).err?.message ?? logged
    },
  })
  const daemon = await startDaemon({ ...config, database }, { clock, log, serves: 'this process' }).catch(
    (error: unknown) => {
      remove()
      throw error
    },
  )
  const options = { createConnection: daemon.connect }
  const transport: Transport = {
    request: http.request,
    options,
    prefix: '',
    intro: () => '',
    failed: (error) => error,
  }
  return async (work) => {
    try {
      return await Promise.race([work(transport), daemon.failure.then((error) => Promise.reject(error))])
    } catch (error) {
      throw withCause(error, logged)
    } finally {
      await daemon.stop()
      remove()
    }
  }
}

/** Nobody reads the log of a daemon inside a command, so the error includes it. */
function withCause(error: unknown, logged: string | null): unknown {
  if (logged === null || !isLatchkeyError(error)) return error
  const { code, message, issues } = error
  const isOfStore = code === 'store_unavailable' || code === 'not_stored'
  return isOfStore || message.endsWith('The cause is in the log.')
    ? new LatchkeyError(code, logged, { issues })
    : error
}
