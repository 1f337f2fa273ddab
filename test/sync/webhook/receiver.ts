import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import { verify } from '../../../src/client/webhooks.js'
import { portOf } from '../../setup/port-of.js'
import { ROOT } from '../../world.js'

export const SECRET = `whsec_${Buffer.from('a secret of the first receiver').toString('base64')}`
export const NEXT_SECRET = `whsec_${Buffer.from('a secret that comes after it..').toString('base64')}`

/** What came, once the library has verified it. */
export interface ReceivedMessage {
  readonly id: string
  /** When it was signed, in epoch milliseconds. */
  readonly signedAt: number
  readonly path: string
  readonly authorization: string | null
  readonly payload: {
    readonly type: string
    readonly timestamp: string
    readonly data: { readonly cursor: string; readonly customerId: string; readonly productId: string }
  }
}

/** Answers a message; `count` says the how many-th it is. */
export type AnswerMessage = (res: ServerResponse, message: ReceivedMessage, count: number) => void

export interface Receiver {
  readonly url: string
  readonly received: readonly ReceivedMessage[]
  /** Whatever the library did not verify. */
  readonly refused: readonly unknown[]
  answerWith(answer: AnswerMessage): void
}

export const status =
  (code: number, headers: Record<string, string> = {}): AnswerMessage =>
  (res) =>
    void res.writeHead(code, headers).end()

/** Exactly what openapi.json describes, which the types for apps are made of: no field more, and none less. */
const describedBy = new Ajv2020({ strict: false })
  .addFormat('date-time', (one) => new Date(one).toISOString() === one)
  .addSchema(
    JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8'), (_, value) =>
      value?.properties === undefined ? value : { additionalProperties: false, ...value },
    ),
    'api',
  )
  .compile({ $ref: 'api#/components/schemas/WebhookMessage' })

/** The merchant's own server: verifies each message by the Standard Webhooks library, and by that for apps. */
export async function startReceiver(secret = SECRET): Promise<Receiver> {
  const received: ReceivedMessage[] = []
  const refused: unknown[] = []
  let answer = status(204)
  const server = createServer(async (req, res) => {
    const headers = Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, `${value}`]))
    try {
      const body = await text(req)
      const payload = new Webhook(secret).verify(body, headers) as ReceivedMessage['payload']
      expect(await verify(body, req.headers, secret)).toEqual({ ...payload, id: headers['webhook-id'] })
      describedBy(payload)
      expect(describedBy.errors).toBeNull()
      const message = {
        id: headers['webhook-id'] ?? '',
        signedAt: Number(headers['webhook-timestamp']) * 1000,
        path: req.url ?? '',
        authorization: req.headers.authorization ?? null,
        payload,
      }
      received.push(message)
      answer(res, message, received.length)
    } catch (error) {
      refused.push(error)
      res.writeHead(401).end()
    }
  })
  return {
    url: `http://127.0.0.1:${await portOf(server)}/hook`,
    received,
    refused,
    answerWith(next) {
      answer = next
    },
  }
}

/** Answers every message with one status, whenever it was signed: for a daemon whose clock stands elsewhere. */
export async function startAnswering(
  first: number,
  atEnd?: (end: () => void) => void,
): Promise<{ url: string; answerWith(status: number): void }> {
  let code = first
  const server = createServer((req, res) => {
    req.resume()
    res.writeHead(code).end()
  })
  return {
    url: `http://127.0.0.1:${await portOf(server, undefined, atEnd)}/hook`,
    answerWith(status) {
      code = status
    },
  }
}
