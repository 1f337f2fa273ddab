import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, unlinkSync } from 'node:fs'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Duplex, PassThrough, type Writable } from 'node:stream'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { http } from '../node-http.js'
import { problemOf } from './problem.js'

/** Time limits for the headers, and for the whole request; and how often both are checked, which is how late they may be. */
const TIMEOUTS = { headersMs: 10_000, requestMs: 15_000, checkMs: 1_000 }
/**
 * Per listener: far more than any proxy keeps open, and few enough that their headers (16 KiB each) and small bodies
 * fit into the memory of a small server.
 */
export const MAX_CONNECTIONS = 2_048
/** Longer than the minute for which proxies usually keep an idle connection, so that they close it first. */
const KEEP_ALIVE_MS = 65_000
/** Requests in progress may take this long at a stop: a delivery is stored or given up within 4 s. */
const STOP_WITHIN_MS = 5_000

interface ServerDeps {
  readonly handle: RequestListener
  /** Called for every connection that is closed because there are too many. */
  readonly onDropped?: () => void
  /** Per listener, by default 2,048. */
  readonly maxConnections?: number
  readonly timeouts?: Readonly<typeof TIMEOUTS>
}

/** An address, where port 0 means any free port, or a socket that only this process's user can open. */
export type ListenAt = { readonly host: string; readonly port: number } | { readonly socketFile: string }

export interface RunningServer {
  /** The real address, such as `http://127.0.0.1:4680`; for a socket `unix:` and its path. */
  readonly url: string
  /**
   * Takes no new connections, closes idle ones, and resolves once the requests in progress are answered, or cut off
   * after 6 s. May be called twice.
   */
  stop(): Promise<void>
}

/** Connections whose sender has proved to know a secret or a key. */
const proved = new WeakSet<Socket>()

/** Marks a sender that knows a secret or a key: unmarked connections are closed before theirs. */
export function markProved({ socket }: IncomingMessage): void {
  proved.add(socket)
}

export function isProved({ socket }: IncomingMessage): boolean {
  return proved.has(socket)
}

/** What is known of a request: for its log lines, and for traces. Nothing in it is personal data. */
export interface RequestFacts {
  /** The caller's own, if it is well formed; as `X-Request-Id` in every answer, and in problems. */
  readonly id: string
  /** The path in the table of routes; null: none matches. */
  route: string | null
  /** Of the API key; null before it is known, and for requests without one. */
  keyName: string | null
  /** The endpoint of a delivery. */
  endpoint: string | null
  /** Of the body of the answer. */
  bytes: number
  /** Its trace; null: it is in none. */
  traceId: string | null
}

/** Safe in a header, a log line and a shell; long enough for the ids of known proxies. */
const USABLE_REQUEST_ID = /^[\w.:=+/-]{1,128}$/

/** A counter after a random text: unique without the cost of random bytes for each request. */
const ID_PREFIX = `${randomBytes(6).toString('hex')}-`
let requestCount = 0

/** A property costs a tenth of a WeakMap, whose dead entries the garbage collector has to clear. */
const FACTS = Symbol('facts')

export function factsOf(req: IncomingMessage & { [FACTS]?: RequestFacts }): RequestFacts {
  req[FACTS] ??= {
    id: idOf(req.headers['x-request-id']),
    route: null,
    keyName: null,
    endpoint: null,
    bytes: 0,
    traceId: null,
  }
  return req[FACTS]
}

function idOf(given: string | string[] | undefined): string {
  return typeof given === 'string' && USABLE_REQUEST_ID.test(given) ? given : newRequestId()
}

function newRequestId(): string {
  requestCount += 1
  return ID_PREFIX + requestCount.toString(36)
}

/** How often a header was sent: Node shows the first of some, and all of others as one. @param name in lower case */
export function countHeader({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i]
    if (sent?.length === name.length && sent.toLowerCase() === name) count += 1
  }
  return count
}

/** Connections on which no further request counts, and whether one came. */
const ending = new WeakMap<Duplex, { hasMore: boolean }>()

/**
 * Makes this answer the last one on its connection. Call it as soon as the request comes: Node reads those behind it
 * in the same chunk before anything else runs.
 */
export function takeNoMore(res: ServerResponse): void {
  ending.set(res.req.socket, { hasMore: false })
  res.setHeader('Connection', 'close')
}

/** What the listener of a connection holds. */
const heldOf = new WeakMap<
  Duplex,
  { readonly connections: Set<Socket>; readonly underWay: Set<ServerResponse> }
>()

/** For a connection with a bound of its own: it takes no place of others any more, and is not closed for them. */
export function leaveBound({ socket }: IncomingMessage): void {
  heldOf.get(socket)?.connections.delete(socket)
}

/**
 * For an answer that lasts, once its head is written: goes on without Node's request, answer and parser. They take
 * three quarters of the memory of an idle connection: with them, the daemon takes 167 MB with 2,000 streams instead of
 * 140, and a small server has 150 for it. The body must end with the connection: it is written as it is.
 * @param proceed called with what to write to, unless the connection is lost before
 */
export function outliveRequest(res: ServerResponse, proceed: (out: Writable) => void): void {
  const { req, socket } = res
  leaveBound(req)
  // Behind an earlier answer it has no connection yet. A log or a trace waits for its end.
  if (socket === null || !req.complete || res.listenerCount('close') > 1) {
    proceed(res)
    return
  }
  // Node destroys the connection with a request that was not read to its end.
  req.once('end', () => {
    if (socket.destroyed) return
    // Node would end the connection for the requests behind this one.
    if (ending.get(socket)?.hasMore) {
      proceed(res)
      return
    }
    heldOf.get(socket)?.underWay.delete(res)
    res.detachSocket(socket)
    // Here Node takes its parser off a connection, and forgets the request. Its documents name no other way, except
    // for requests that ask for an upgrade. (Without this line, no memory is saved.)
    socket.emit('close')
    proceed(onlyWrittenTo(socket))
  })
  req.resume()
}

/** Closed once either side has ended it, as Node does after an answer. (Its listeners hold nothing else.) */
function onlyWrittenTo(socket: Duplex): Writable {
  socket.removeAllListeners()
  socket.on('error', () => {}).on('end', () => socket.end())
  return socket.on('finish', () => socket.destroy()).resume()
}

/** One listener. Slow, malformed and abandoned requests end here and reach no handler whole. */
export function createServer({
  handle,
  onDropped,
  maxConnections = MAX_CONNECTIONS,
  timeouts = TIMEOUTS,
}: ServerDeps) {
  const server = http.createServer({
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    connectionsCheckingInterval: timeouts.checkMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
  })
  const connections = new Set<Socket>()
  const underWay = new Set<ServerResponse>()
  const { note, stop } = createStop(server, connections, underWay)
  const answerMalformed = createAnswerMalformed(underWay)

  server.on('request', (req, res) => {
    const end = ending.get(req.socket)
    if (end !== undefined) {
      end.hasMore = true
      // Nothing more is read: what waits in memory for an answer would have no bound.
      req.socket.pause()
      return
    }
    // RFC 9112, 3.2: a proxy may have taken the other one.
    if (countHeader(req, 'host') > 1) {
      takeNoMore(res)
      void answerMalformed(TWO_HOSTS, req.socket)
      return
    }
    note(res)
    handle(req, res)
  })
  server.on('clientError', answerMalformed)
  server.on('connection', (socket) => {
    // Node caches `remoteAddress` on first use; after the socket closes it would be undefined.
    void socket.remoteAddress
    if (connections.size >= maxConnections) {
      onDropped?.()
      makeRoom(connections, socket).destroy()
    }
    connections.add(socket)
    heldOf.set(socket, { connections, underWay })
    socket.on('close', () => connections.delete(socket))
  })

  return {
    /**
     * Rejects with the system's error, such as `EADDRINUSE`. Replaces an existing socket file: the daemon holds the lock
     * of the database, so the file is left from a process that is gone.
     */
    listen: (at: ListenAt) =>
      new Promise<RunningServer>((resolve, reject) => {
        server.once('error', reject)
        // Not `rmSync`, whose errors may have no code.
        if ('socketFile' in at && existsSync(at.socketFile)) unlinkSync(at.socketFile)
        server.listen('socketFile' in at ? { path: at.socketFile } : at, () => {
          server.off('error', reject)
          if ('socketFile' in at) chmodSync(at.socketFile, 0o600)
          const url = 'socketFile' in at ? `unix:${at.socketFile}` : urlOf(server.address() as AddressInfo)
          resolve({ url, stop })
        })
      }),
    /** An in-process connection, which needs no open address. */
    connect(): Duplex {
      const [inner, outer] = connectionPair()
      server.emit('connection', inner)
      return outer
    },
    stop,
  }
}

/** The two ends of a connection. (`duplexPair` of node:stream only exists since Node 22.6.) */
function connectionPair(): readonly [Duplex, Duplex] {
  const [there, back] = [new PassThrough(), new PassThrough()]
  return [Duplex.from({ readable: there, writable: back }), Duplex.from({ readable: back, writable: there })]
}

/** The oldest unproved connection, so that idle ones keep nobody out; if there is none, the new one. */
function makeRoom(connections: ReadonlySet<Socket>, newcomer: Socket): Socket {
  for (const socket of connections) if (!proved.has(socket) && !socket.destroyed) return socket
  return newcomer
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

function createStop(server: Server, connections: ReadonlySet<Socket>, underWay: Set<ServerResponse>) {
  let stopped: Promise<void> | null = null

  function close(): Promise<void> {
    return new Promise((resolve) => {
      const force = setTimeout(() => server.closeAllConnections(), STOP_WITHIN_MS)
      server.close(() => {
        clearTimeout(force)
        resolve()
      })
      for (const res of underWay) {
        if (!res.headersSent) res.setHeader('Connection', 'close')
      }
      // Node counts a connection that has not sent anything yet as busy.
      for (const socket of connections) {
        if (socket.bytesRead === 0) socket.destroy()
      }
    })
  }

  return {
    /** Must be called for each answer before it is written. */
    note(res: ServerResponse): void {
      underWay.add(res)
      res.on('close', () => underWay.delete(res))
      if (stopped !== null) res.setHeader('Connection', 'close')
    },
    stop(): Promise<void> {
      stopped ??= close()
      return stopped
    },
  }
}

/**
 * Answers malformed input that never became a request, and closes the connection: its bytes can't be trusted any
 * more. Earlier whole requests on the connection get their answers first.
 *
 * @param underWay the answers of all connections that are not sent yet
 */
function createAnswerMalformed(underWay: ReadonlySet<ServerResponse>) {
  const seen = new WeakSet<Duplex>()

  return async (error: NodeJS.ErrnoException, socket: Duplex): Promise<void> => {
    // Node reports every later chunk again.
    if (seen.has(socket)) return
    seen.add(socket)
    socket.pause()
    const answers = [...underWay].filter(({ req }) => req.socket === socket)
    const own = answers.find(({ req }) => !req.complete)
    const before = answers.filter((one) => one !== own)
    await Promise.all(before.map((one) => new Promise((resolve) => one.once('close', resolve))))
    if (socket.writable && !own?.headersSent)
      socket.write(answerTo(error, own === undefined ? newRequestId() : factsOf(own.req).id))
    socket.end(() => socket.destroy())
  }
}

const TWO_HOSTS = new LatchkeyError('invalid_request', 'The request has several Host headers: send one.')

function answerTo(error: NodeJS.ErrnoException, requestId: string): string {
  const { status, headers, body } = problemOf(failureOf(error), requestId)
  const head = Object.entries({
    ...headers,
    'X-Request-Id': requestId,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  })
  const lines = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    ...head.map(([name, value]) => `${name}: ${value}`),
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

function failureOf(error: NodeJS.ErrnoException): LatchkeyError {
  if (isLatchkeyError(error)) return error
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new LatchkeyError('body_incomplete', 'The request did not arrive in time.')
    case 'HPE_HEADER_OVERFLOW':
      return new LatchkeyError(
        'headers_too_large',
        `The path and the headers are over ${http.maxHeaderSize} bytes.`,
      )
    default:
      return new LatchkeyError('invalid_request', 'This is not valid HTTP.')
  }
}
