import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createAnswerReader } from './answers.js'

/** What came of many requests. */
export interface LoadRun {
  readonly seconds: number
  /** In the order of the requests. */
  readonly latenciesMs: Float64Array
  /** How many answers had which status. */
  readonly statuses: Readonly<Record<number, number>>
}

export interface LoadClient {
  /** Sends every request once; each connection waits for the answer to one before it sends the next. */
  send(requests: readonly Buffer[]): Promise<LoadRun>
  close(): void
}

/** Writes one request, and resolves with the status of its answer. */
type Exchange = (request: Buffer) => Promise<number>

/**
 * A client that does next to nothing: requests are bytes already, and of an answer it reads the status line
 * and the length. So it can ask more than any server here can answer.
 */
export async function openClient(ports: readonly number[], connections: number): Promise<LoadClient> {
  const sockets = await Promise.all(
    Array.from({ length: connections }, (_, i) => open(ports[i % ports.length] as number)),
  )
  const exchanges = sockets.map(createExchange)
  return {
    send: (requests) => sendAll(exchanges, requests),
    close: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await once(socket, 'connect')
  return socket
}

function createExchange(socket: Socket): Exchange {
  const read = createAnswerReader()
  let answered: (status: number) => void = () => {}
  let failed: (error: Error) => void = () => {}
  socket.on('data', (chunk) => {
    const status = read(chunk)
    if (status !== null) answered(status)
  })
  socket.on('error', (error) => failed(error))
  socket.on('close', () => failed(new Error('The server closed a connection.')))
  return (request) =>
    new Promise((resolve, reject) => {
      answered = resolve
      failed = reject
      socket.write(request)
    })
}

async function sendAll(exchanges: readonly Exchange[], requests: readonly Buffer[]): Promise<LoadRun> {
  const latenciesMs = new Float64Array(requests.length)
  const statuses: Record<number, number> = {}
  const waiting = requests.entries()
  // All connections take from one and the same iterator.
  const drive = async (exchange: Exchange): Promise<void> => {
    for (const [i, request] of waiting) {
      const sentAt = performance.now()
      const status = await exchange(request)
      latenciesMs[i] = performance.now() - sentAt
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  const startedAt = performance.now()
  await Promise.all(exchanges.map(drive))
  return { seconds: (performance.now() - startedAt) / 1000, latenciesMs, statuses }
}
