import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface ReceivedDelivery {
  readonly path: string | undefined
  readonly headers: Readonly<Record<string, string[] | undefined>>
  readonly body: Buffer
}

export interface Receiver {
  readonly port: number
  readonly url: string
  readonly deliveries: readonly ReceivedDelivery[]
}

/** Listens as the daemon would, keeps what comes, and answers each delivery with `status` and `answer`. */
export async function startReceiver(
  answer: (delivery: ReceivedDelivery) => unknown,
  { status = 200, host = '127.0.0.1' } = {},
): Promise<Receiver> {
  const deliveries: ReceivedDelivery[] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const delivery = { path: req.url, headers: req.headersDistinct, body: Buffer.concat(chunks) }
      deliveries.push(delivery)
      res.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
      res.end(JSON.stringify(answer(delivery)))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, deliveries }
}

/** A port that nobody listens on. */
export async function unusedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise<void>((resolve) => server.close(() => resolve()))
  return port
}
