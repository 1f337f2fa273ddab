import type { RequestOptions } from 'node:http'
import { request as overHttps } from 'node:https'
import { buffer } from 'node:stream/consumers'
import { urlToHttpOptions } from 'node:url'
import type { Config } from '../config/schema.js'
import { ERROR_CODES, type Issue, LatchkeyError } from '../errors.js'
import { http } from '../node-http.js'
import type { Environment } from '../provider/event.js'
import type { CliContext, SharedOptions } from './context.js'
import { jsonIn } from './text.js'

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

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly pagination: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

/**
 * The HTTP API of a daemon. Every request may reject with `daemon_unreachable` if nothing answers any more, with
 * `daemon_failed` if an answer is cut off, and with the code and issues of a refusal.
 */
export interface Api {
  /** The config of the daemon that serves the configured database; null: `--url` names another daemon. */
  readonly config: Config | null
  /** From the options, or else from the config; undefined: the API chooses. */
  readonly environment: Environment | undefined
  /** Whether no daemon answers, but this command itself, from the store. */
  readonly isOverStore: boolean
  get<Answer>(path: string, query?: Query): Promise<Answer>
  getBytes(path: string, query?: Query): Promise<Buffer>
  send<Answer>(method: Exclude<Method, 'GET'>, path: string, request?: ApiRequest): Promise<Answer>
}

/** The API of the daemon that listens on this local socket. @param options `signal` ends requests under way */
export function apiAtSocket(
  socketPath: string,
  { config = null, signal }: { readonly config?: Config | null; readonly signal?: AbortSignal } = {},
): Api {
  const transport = transportToSocket(socketPath)
  const options = { ...transport.options, ...(signal && { signal }) }
  return createApi({ ...transport, options }, { config, environment: undefined })
}

/** For the routes at an address that need no key. */
export function keylessApi(url: string): Api {
  return createApi(transportToAddress(url, {}), { config: null, environment: undefined })
}

/** Where requests go, and how their failures are reported. */
export interface Transport {
  readonly request: typeof http.request
  readonly options: RequestOptions
  readonly prefix: string
  /** The prefix of the daemon's message in a refusal. */
  readonly intro: (status: number) => string
  readonly failed: (error: NodeJS.ErrnoException) => unknown
  /** If no daemon answers, but the store: called behind each answer. @throws if the answer may be wrong */
  readonly confirm?: () => void
}

export function createApi(transport: Transport, known: Pick<Api, 'config' | 'environment'>): Api {
  async function exchange(method: Method, path: string, request: ApiRequest): Promise<Buffer> {
    const { status, body } = await ask(transport, method, path, request)
    transport.confirm?.()
    if (status < 200 || status >= 300) throw refusal(transport, status, jsonIn(body.toString('utf8')))
    return body
  }
  async function answer<Answer>(method: Method, path: string, request: ApiRequest): Promise<Answer> {
    const body = jsonIn((await exchange(method, path, request)).toString('utf8'))
    if (body === undefined) throw refusal(transport, 200, body)
    return body as Answer
  }
  return {
    ...known,
    isOverStore: transport.confirm !== undefined,
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

const answered = (status: number) => `the daemon answered ${status}: `

export function transportToUrl(url: string, { env }: CliContext): Transport {
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

export function transportToSocket(socketPath: string): Transport {
  return {
    request: http.request,
    options: { socketPath },
    prefix: '',
    intro: answered,
    failed: (error) => (isNobody(error) ? unreachable(socketPath, error) : brokenOff(error)),
  }
}

/** Only a socket that nobody listens on proves that no daemon serves the database. */
export function isNobody({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ENOENT' || code === 'ECONNREFUSED'
}

function brokenOff(cause: Error): LatchkeyError {
  const todo = 'it may have done the work anyway; run the command again to be sure'
  return new LatchkeyError('daemon_failed', `the daemon did not answer: ${cause.message}: ${todo}`, { cause })
}

function unreachable(where: string, cause: unknown): LatchkeyError {
  const message = `no daemon answers at ${where}: start one with \`latchkey serve\``
  return new LatchkeyError('daemon_unreachable', message, { cause })
}
