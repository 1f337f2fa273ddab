import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import {
  createPaymentsApi,
  type PaymentsApi,
  type PaymentsApiOptions,
} from '../../src/payments-api/client.js'

export const KEY = 'sk_sandbox_0123456789abcdef'

/** What a server does with one request; the last one does it with all further ones. */
export type Odd = (req: IncomingMessage, res: ServerResponse) => void

export interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A service that misbehaves as it is told to, request by request, and an API that asks it without waiting. */
export async function oddService(answers: readonly Odd[], options: Partial<PaymentsApiOptions> = {}) {
  const asked: Asked[] = []
  const server = createServer(async (req, res) => {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    asked.push({
      method: req.method ?? '',
      url: req.url ?? '',
      headers: req.headers,
      body: Buffer.concat(parts).toString(),
    })
    answers[Math.min(asked.length, answers.length) - 1]?.(req, res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const waits: number[] = []
  const clock = { now: Date.UTC(2026, 0, 1) }
  const api: PaymentsApi = createPaymentsApi({
    environment: 'sandbox',
    baseUrl: url,
    apiKey: KEY,
    legacy: true,
    clock: () => clock.now,
    random: () => 0,
    sleep: async (ms, signal) => {
      signal.throwIfAborted()
      waits.push(ms)
      clock.now += ms
    },
    ...options,
  })
  return { api, url, asked, waits, clock }
}

export const json =
  (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Odd =>
  (_req, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }

export const ok = (data: unknown): Odd => json({ success: true, data })

export const refusal = (
  status: number,
  error: unknown,
  more: object = {},
  headers: Readonly<Record<string, string>> = {},
): Odd => json({ success: false, error, message: 'No.', ...more }, status, headers)

export const html =
  (status = 200): Odd =>
  (_req, res) => {
    res.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Back soon</h1>')
  }

/** Begins an answer and cuts the connection. */
export const cut: Odd = (_req, res) => {
  res.writeHead(200, { 'content-type': 'application/json' }).write('{"success":true,"da')
  setImmediate(() => res.destroy())
}

export const customers = (...ids: readonly string[]) => ids.map((id) => ({ id }))

/** A page of a v3 list. */
export const page = (items: readonly unknown[], nextCursor: string | null = null): Odd =>
  ok({ items, pagination: { nextCursor, hasMore: nextCursor !== null } })

/** A page of a v2 list. */
export const numbered = (data: readonly unknown[], number: number, totalPages: number): Odd =>
  ok({ data, pagination: { page: number, limit: 25, total: data.length, totalPages } })
