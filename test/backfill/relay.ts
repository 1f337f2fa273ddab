import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** What stands before a payments service: it counts what is asked, and has lists come in small pages. */
export interface Relay {
  readonly url: string
  /** Every request, such as `GET /v3/payments?cursor=abc`, without the size of the page. */
  readonly asked: string[]
  /** Answers in the place of the service, if it returns true. */
  before: (path: string, res: ServerResponse, req: IncomingMessage) => boolean | Promise<boolean>
  /** Changes what the service answered. */
  after: (path: string, json: Answered) => unknown
}

// biome-ignore lint/suspicious/noExplicitAny: each test knows what it changes.
export type Answered = any

/** @param pageSize of lists */
export async function startRelay(service: { readonly url: string }, pageSize: number): Promise<Relay> {
  const server = createServer(async (req, res) => {
    const url = new URL(req.url ?? '', service.url)
    const isList = url.searchParams.has('limit')
    url.searchParams.delete('limit')
    const path = `${req.method} ${url.pathname}${url.search}`
    relay.asked.push(path)
    if (await relay.before(path, res, req)) return
    if (isList) url.searchParams.set('limit', String(pageSize))
    const key = String(req.headers['x-service-api-key'])
    const answer = await fetch(url, { headers: { 'X-Service-Api-Key': key } })
    const body = relay.after(path, await answer.json())
    res.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const relay: Relay = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    before: () => false,
    after: (_, json) => json,
  }
  return relay
}
