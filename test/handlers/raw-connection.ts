import { connect } from 'node:net'
import { onTestFinished } from 'vitest'

/** A connection that says exactly what a test wants it to, and remembers what came back. */
export interface RawConnection {
  send(bytes: string | Buffer): void
  /** Ends its own side only, as a sender does that has nothing more to say. */
  end(): void
  destroy(): void
  received(): string
  /** Resolves once the answer holds this text; rejects if the connection closes first. */
  until(text: string): Promise<void>
  /** Resolves with all that came back, once the other side has closed. */
  readonly closed: Promise<string>
}

export async function openConnection(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => {
    socket.destroy()
  })
  let received = ''
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    received += text
  })
  // A reset counts as closed: what was received before it is what a test looks at.
  socket.on('error', () => {})
  const closed = new Promise<string>((resolve) => socket.on('close', () => resolve(received)))
  await new Promise((resolve) => socket.once('connect', resolve))

  return {
    send: (bytes) => {
      socket.write(bytes)
    },
    end: () => {
      socket.end()
    },
    destroy: () => {
      socket.destroy()
    },
    received: () => received,
    until: (text) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (received.includes(text)) resolve()
        }
        socket.on('data', check)
        socket.once('close', () => reject(new Error(`closed before ${JSON.stringify(text)}: ${received}`)))
        check()
      }),
    closed,
  }
}

/** Sends these bytes and resolves with the whole answer, once the other side has closed. */
export async function exchange(url: string, bytes: string | Buffer): Promise<string> {
  const connection = await openConnection(url)
  connection.send(bytes)
  return connection.closed
}

/** The bytes of a request's head. */
export function head(line: string, headers: Record<string, string> = {}): string {
  const lines = Object.entries({ host: 'front', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return `${[`${line} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`
}
