/*
 * The network of the simulated world. Servers listen, and programs connect, as ever; what they send crosses from one
 * memory to another with a delay that is drawn, in virtual time.
 */

import { writeFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import type net from 'node:net'
import { Duplex } from 'node:stream'
import { drawn } from './chance.js'
import { currentProcess, runAs, type SimulatedProcess } from './processes.js'
import { trace } from './trace.js'
import { elapsed, later } from './virtual-time.js'

const require = createRequire(import.meta.url)
const nodeNet = require('node:net') as typeof net & Record<string, unknown>
const nodeHttp = require('node:http') as typeof import('node:http')

/** Ports are given in this order. */
const FIRST_PORT = 20_001

type Listener = net.Server & { _connections: number; _handle: unknown; _emitCloseIfDrained(): void }

interface Listening {
  readonly server: Listener
  readonly owner: SimulatedProcess | null
}

/** By port, or by the path of a socket. */
const listening = new Map<string, Listening>()
let nextPort = FIRST_PORT
let sockets = 0

export function restartNetwork(): void {
  listening.clear()
  nextPort = FIRST_PORT
}

/** Mostly at once; now and then a packet is late. */
function delay(): number {
  const chance = drawn()
  return chance.is(0.03) ? chance.below(400) : chance.below(3)
}

function failure(code: string, call: string): Error {
  return Object.assign(new Error(`${call} ${code}`), { code, syscall: call })
}

/** One end of a connection. */
interface End {
  readonly owner: SimulatedProcess | null
  readonly isGone: boolean
  receive(chunk: Buffer): void
  /** The other side has sent all. */
  finish(): void
  reset(error: Error): void
}

/** One direction: what is sent arrives in order. */
function wayTo(end: End): { send(chunk: Buffer): void; finish(): void; reset(): void } {
  let clearAt = Number.NEGATIVE_INFINITY
  const arrive = (act: () => void): void => {
    const from = elapsed()
    clearAt = Math.max(clearAt, from + delay())
    later(clearAt - from, end.owner, () => {
      if (!end.isGone) act()
    })
  }
  return {
    send: (chunk) => arrive(() => end.receive(chunk)),
    finish: () => arrive(() => end.finish()),
    reset: () => arrive(() => end.reset(failure('ECONNRESET', 'read'))),
  }
}

class VirtualSocket extends Duplex implements End {
  readonly owner: SimulatedProcess | null
  readonly remoteAddress = '127.0.0.1'
  readonly localAddress = '127.0.0.1'
  readonly remoteFamily = 'IPv4'
  readonly remotePort = 1
  /** The later it was made, the higher. */
  readonly number: number
  connecting = false
  bytesRead = 0
  bytesWritten = 0
  way: ReturnType<typeof wayTo> | null = null
  readonly #onDeath = (): void => {
    this.way?.reset()
    this.way = null
    this.destroy()
  }

  constructor(owner: SimulatedProcess | null, allowHalfOpen: boolean) {
    super({ allowHalfOpen })
    this.owner = owner
    sockets += 1
    this.number = sockets
    owner?.onDeath.add(this.#onDeath)
  }

  get isGone(): boolean {
    return this.destroyed
  }

  receive(chunk: Buffer): void {
    this.bytesRead += chunk.length
    this.push(chunk)
  }

  finish(): void {
    this.push(null)
    // Nobody may read it any more, and it ends all the same.
    if (this.readableFlowing === null && !this.listenerCount('readable')) this.resume()
  }

  reset(error: Error): void {
    this.destroy(error)
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#once(() => this.#send(chunk), done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#once(() => this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk))), done)
  }

  /** Once it is connected. */
  #once(act: () => void, done: () => void): void {
    const both = (): void => {
      act()
      done()
    }
    if (this.connecting) this.once('connect', both)
    else both()
  }

  #send(chunk: Buffer): void {
    this.bytesWritten += chunk.length
    if (this.owner?.isDead) return
    // Whoever writes may use the memory again.
    this.way?.send(Buffer.from(chunk))
  }

  override _final(done: () => void): void {
    this.#once(() => {
      if (!this.owner?.isDead) this.way?.finish()
    }, done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.owner?.onDeath.delete(this.#onDeath)
    if (!this.writableFinished) this.way?.finish()
    this.way = null
    done(error)
  }

  setTimeout(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  address(): object {
    return { address: this.localAddress, port: this.remotePort, family: this.remoteFamily }
  }
}

const placeOf = (asked: { readonly port?: number | string | null; readonly path?: string | null }): string =>
  asked.path ?? String(asked.port)

/** The server's end of a new connection, whose other end is `end`; null: nobody listens there. */
function accept(place: string, end: End): VirtualSocket | null {
  const found = listening.get(place)
  if (found === undefined || found.owner?.isDead) return null
  const { server, owner } = found
  const socket = new VirtualSocket(owner, true)
  socket.way = wayTo(end)
  server._connections += 1
  socket.once('close', () => {
    server._connections -= 1
    server._emitCloseIfDrained()
  })
  return socket
}

/** What `net.connect` does. */
function connect(asked: { readonly port?: number; readonly path?: string }): VirtualSocket {
  const own = new VirtualSocket(currentProcess(), false)
  own.connecting = true
  later(delay(), own.owner, () => {
    if (own.destroyed) return
    const other = accept(placeOf(asked), own)
    own.connecting = false
    if (other === null) return void own.destroy(failure('ECONNREFUSED', 'connect'))
    own.way = wayTo(other)
    runAs(other.owner, () => listening.get(placeOf(asked))?.server.emit('connection', other))
    own.emit('connect')
    own.emit('ready')
  })
  return own
}

function listen(this: Listener, ...args: unknown[]): Listener {
  const [first, second] = args
  const callback = args.findLast((one) => typeof one === 'function') as (() => void) | undefined
  const asked = (
    typeof first === 'object' && first !== null
      ? first
      : { port: first, ...(typeof second === 'string' && { host: second }) }
  ) as { readonly port?: number; readonly path?: string }
  const port = asked.port || nextPort
  if (asked.path === undefined && port === nextPort) nextPort += 1
  const place = asked.path ?? String(port)
  if (callback !== undefined) this.once('listening', callback)
  const owner = currentProcess()
  if (listening.has(place)) {
    later(0, owner, () => this.emit('error', failure('EADDRINUSE', 'listen')))
    return this
  }
  listening.set(place, { server: this, owner })
  const end = (): void => {
    if (listening.get(place)?.server === this) listening.delete(place)
    owner?.onDeath.delete(end)
  }
  owner?.onDeath.add(end)
  // Its mode is set, and it is removed, as that of any file.
  if (asked.path !== undefined) writeFileSync(asked.path, '')
  this._handle = { close: end, ref() {}, unref() {} }
  this.address = () =>
    asked.path === undefined ? { address: '127.0.0.1', port, family: 'IPv4' } : asked.path
  if (this instanceof nodeHttp.Server && !noted.has(this)) {
    noted.add(this)
    this.prependListener('request', noteRequest(place))
  }
  later(0, owner, () => {
    this.emit('listening')
    stopWatching(this)
  })
  return this
}

/** Before it is replaced. */
const clearRealInterval = clearInterval

/** Node looks after a server's slow requests by the real time, and so never lets go of a server that was killed. */
function stopWatching(server: Listener): void {
  const own = Object.getOwnPropertySymbols(server).find(
    (one) => one.description === 'http.server.connectionsCheckingInterval',
  )
  if (own !== undefined) clearRealInterval(Reflect.get(server, own) as NodeJS.Timeout)
}

/** A server may end and listen again, at the same place. */
const noted = new WeakSet<Listener>()

/** Every request that reaches a server, and how it is answered, is part of the trace. */
const noteRequest =
  (place: string) =>
  (req: IncomingMessage, res: ServerResponse): void => {
    const what = `${place.startsWith('/') ? 'socket' : place} ${req.method} ${req.url}`
    trace(what)
    res.once('finish', () => trace(`${what} -> ${res.statusCode}`))
  }

// What `fetch` does

/** One request and its answer. */
class Exchange implements End {
  readonly owner = currentProcess()
  isGone = false
  #read: Buffer = Buffer.alloc(0)
  #left: number | 'chunked' | 'to the end' | null = null
  #isAnswered = false
  #isDone = false
  #stream: ReadableStreamDefaultController<Uint8Array> | null = null
  readonly #chunks: Buffer[] = []
  readonly #resolve: (response: Response) => void
  readonly #reject: (error: unknown) => void
  readonly #onOver: () => void
  readonly #hasBody: (status: number) => boolean

  constructor(
    method: string,
    resolve: (response: Response) => void,
    reject: (error: unknown) => void,
    onOver: () => void,
  ) {
    this.#resolve = resolve
    this.#reject = reject
    this.#onOver = onOver
    this.#hasBody = (status) => method !== 'HEAD' && status !== 204 && status !== 304
  }

  receive(chunk: Buffer): void {
    if (this.#isDone) return
    this.#read = this.#read.length === 0 ? chunk : Buffer.concat([this.#read, chunk])
    const head = this.#left === null ? this.#takeHead() : null
    if (this.#left === null) return
    this.#takeBody()
    if (head !== null) this.#answer(head)
  }

  finish(): void {
    if (this.#isDone) return
    if (this.#left === 'to the end') this.#end()
    else this.fail(Object.assign(new TypeError('fetch failed'), { cause: failure('UND_ERR_SOCKET', 'read') }))
  }

  reset(cause: Error): void {
    this.fail(Object.assign(new TypeError('fetch failed'), { cause }))
  }

  fail(error: unknown): void {
    if (this.#isDone) return
    this.#isDone = true
    if (this.#isAnswered) this.#stream?.error(error)
    else this.#reject(error)
    this.#over()
  }

  #over(): void {
    this.isGone = true
    this.#onOver()
  }

  #end(): void {
    this.#isDone = true
    this.#stream?.close()
    this.#over()
  }

  #takeHead(): { readonly status: number; readonly headers: Headers } | null {
    const end = this.#read.indexOf('\r\n\r\n')
    if (end < 0) return null
    const [first = '', ...lines] = this.#read.toString('latin1', 0, end).split('\r\n')
    this.#read = this.#read.subarray(end + 4)
    const headers = new Headers()
    for (const line of lines) {
      const colon = line.indexOf(':')
      headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
    }
    const status = Number(first.split(' ')[1])
    const length = headers.get('content-length')
    if (!this.#hasBody(status)) this.#left = 0
    else if (headers.get('transfer-encoding') === 'chunked') this.#left = 'chunked'
    else this.#left = length === null ? 'to the end' : Number(length)
    return { status, headers }
  }

  #takeBody(): void {
    if (this.#left === 'chunked') {
      this.#takeChunks()
      return
    }
    if (this.#left === 'to the end') {
      this.#give(this.#read)
      this.#read = Buffer.alloc(0)
      return
    }
    const taken = this.#read.subarray(0, this.#left as number)
    this.#read = this.#read.subarray(taken.length)
    this.#left = (this.#left as number) - taken.length
    this.#give(taken)
    if (this.#left === 0) this.#end()
  }

  #takeChunks(): void {
    for (;;) {
      const line = this.#read.indexOf('\r\n')
      if (line < 0) return
      const size = Number.parseInt(this.#read.toString('latin1', 0, line), 16)
      if (this.#read.length < line + 2 + size + 2) return
      this.#give(this.#read.subarray(line + 2, line + 2 + size))
      this.#read = this.#read.subarray(line + 2 + size + 2)
      if (size > 0) continue
      this.#end()
      return
    }
  }

  #give(chunk: Buffer): void {
    if (chunk.length === 0) return
    if (this.#stream === null) this.#chunks.push(chunk)
    else this.#stream.enqueue(new Uint8Array(chunk))
  }

  #answer({ status, headers }: { readonly status: number; readonly headers: Headers }): void {
    this.#isAnswered = true
    const known = Buffer.concat(this.#chunks)
    if (!this.#hasBody(status) || this.#isDone) {
      this.#resolve(new Response(this.#hasBody(status) ? known : null, { status, headers }))
      return
    }
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#stream = controller
        if (known.length > 0) controller.enqueue(new Uint8Array(known))
      },
      cancel: () => {
        this.#isDone = true
        this.#over()
      },
    })
    this.#resolve(new Response(body, { status, headers }))
  }
}

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>> | Headers
  readonly body?: string | Uint8Array | null
  readonly redirect?: string
  readonly signal?: AbortSignal | null
}

/** One connection for each request. */
function virtualFetch(input: string | URL, asked: Asked = {}): Promise<Response> {
  const { method = 'GET', signal, redirect } = asked
  const url = new URL(input)
  const body = asked.body === undefined || asked.body === null ? null : Buffer.from(asked.body)
  const headers = new Headers(asked.headers)
  const head = [
    `${method} ${url.pathname}${url.search} HTTP/1.1`,
    `host: ${url.host}`,
    'connection: close',
    ...(body === null ? [] : [`content-length: ${body.length}`]),
    ...[...headers].map(([name, value]) => `${name}: ${value}`),
  ]
  const request = Buffer.concat([
    Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'),
    body ?? Buffer.alloc(0),
  ])
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    let other: VirtualSocket | null = null
    const abort = (): void => exchange.fail(signal?.reason)
    const exchange = new Exchange(
      method,
      (response) => {
        const isRedirect = response.status >= 300 && response.status < 400 && response.headers.has('location')
        if (isRedirect && redirect === 'error') {
          reject(Object.assign(new TypeError('fetch failed'), { cause: new Error('unexpected redirect') }))
        } else resolve(response)
      },
      reject,
      () => {
        signal?.removeEventListener('abort', abort)
        if (other !== null) wayTo(other).reset()
      },
    )
    signal?.addEventListener('abort', abort, { once: true })
    later(delay(), exchange.owner, () => {
      if (exchange.isGone) return
      const place = String(url.port || (url.protocol === 'https:' ? 443 : 80))
      const accepted = accept(place, exchange)
      if (accepted === null) return exchange.reset(failure('ECONNREFUSED', 'connect'))
      other = accepted
      runAs(accepted.owner, () => {
        listening.get(place)?.server.emit('connection', accepted)
        accepted.receive(request)
      })
    })
  })
}

interface Parser {
  readonly socket: VirtualSocket & { readonly _httpMessage?: { readonly finished: boolean } | null }
}

/** Node closes a server's connections by their place in memory. Here the oldest comes first. */
function closeInOrder(list: 'all' | 'idle') {
  return function (this: Server): void {
    const own = Object.getOwnPropertySymbols(this).find(
      (one) => one.description === 'http.server.connections',
    )
    const lists = Reflect.get(this, own ?? '') as Record<typeof list, () => Parser[]> | undefined
    const sockets = (lists?.[list]() ?? []).map(({ socket }) => socket)
    for (const socket of sockets.sort((one, other) => one.number - other.number)) {
      if (list === 'idle' && socket._httpMessage?.finished === false) continue
      socket.destroy()
    }
  }
}

/** Replaces every way to another process. */
export function replaceNetwork(): void {
  nodeNet.Server.prototype.listen = listen as never
  Object.assign(nodeNet, { connect, createConnection: connect })
  nodeHttp.Server.prototype.closeAllConnections = closeInOrder('all')
  nodeHttp.Server.prototype.closeIdleConnections = closeInOrder('idle')
  // An agent's options hold the path of the request, too.
  Object.assign(nodeHttp.Agent.prototype, {
    createConnection: ({ port }: { readonly port: number }) => connect({ port }),
  })
  globalThis.fetch = virtualFetch as typeof fetch
  syncBuiltinESMExports()
}
