import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { whenTestEnds } from '../world.js'

/** In each direction. */
const SLOW_MS = 60

/**
 * A way to a server: it can be cut, or frozen, where it keeps connections and passes nothing on, or slow, as to a server
 * that is far away.
 */
export interface Way {
  readonly port: number
  become(state: 'open' | 'cut' | 'frozen' | 'slow'): void
}

/**
 * @param portOf where the next connection leads; null: nowhere
 * @param onSent called with what a client sends; where a request begins, answers with what to call at its answer or end
 * @param atEnd takes what ends it; by default it ends with the test
 */
export async function openWay(
  portOf: () => number | null,
  onSent: (data: Buffer) => (() => void) | undefined = () => undefined,
  atEnd = whenTestEnds,
): Promise<Way> {
  const sockets = new Set<Socket>()
  let state: Parameters<Way['become']>[0] = 'open'
  const add = (socket: Socket) => {
    sockets.add(socket)
    if (state === 'frozen') socket.pause()
    return socket.on('error', () => {})
  }
  const server = createServer((inner) => {
    const port = portOf()
    if (state === 'cut' || port === null) return inner.destroy()
    const outer = connect(port, '127.0.0.1')
    let answered = () => {}
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      let passed = Promise.resolve()
      let waiting = 0
      /** In order, and later if it is slow. */
      const pass = (act: () => void): void => {
        if (state !== 'slow' && waiting === 0) {
          act()
          return
        }
        const due = performance.now() + (state === 'slow' ? SLOW_MS : 0)
        waiting += 1
        passed = passed
          .then(() => wait(Math.max(0, due - performance.now())))
          .then(() => {
            waiting -= 1
            act()
          })
      }
      // Not piped: a pipe resumes what was paused.
      add(from).on('data', (data) => {
        if (from === inner) answered = onSent(data) ?? answered
        else answered()
        pass(() => to.write(data))
      })
      from.on('end', () => pass(() => to.end()))
      from.on('close', () => {
        sockets.delete(from)
        answered()
        to.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    become(next) {
      state = next
      for (const socket of sockets) {
        if (state === 'cut') socket.destroy()
        else if (state === 'frozen') socket.pause()
        else socket.resume()
      }
    },
  }
}

/** The same address by a way. */
export function urlBy({ port }: Way, url: string): string {
  const by = new URL(url)
  by.port = String(port)
  return by.href
}
