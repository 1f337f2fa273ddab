/* The merchant's own servers, to which the daemon posts every change of access. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { verify, WebhookError } from '../../../src/client/webhooks.js'
import type { AtEnd } from '../../world.js'
import type { Chance } from '../machine/chance.js'
import { createProcess, runAs } from '../machine/processes.js'
import { lasting } from '../machine/time.js'

export interface TakenMessage {
  readonly id: string
  readonly cursor: string
  readonly customerId: string
  readonly productId: string
}

export interface SimulatedReceiver {
  readonly id: string
  readonly url: string
  /** What was answered with success, in order. */
  readonly taken: TakenMessage[]
  /** Why it could not verify something. */
  readonly refused: string[]
  /** For the next messages, until it is well again. */
  failAs(failure: Failure): void
  recover(): void
}

/** `slow`: takes the message, and its answer comes too late. */
export const FAILURES = ['error', 'limit', 'silence', 'slow', 'cut'] as const
export type Failure = (typeof FAILURES)[number]

export const RECEIVER_SECRET = `whsec_${Buffer.from('what the daemon and its receivers know').toString('base64')}`
const TOO_LATE_MS = 20_000

export async function startReceiver(id: string, chance: Chance, atEnd: AtEnd): Promise<SimulatedReceiver> {
  const taken: TakenMessage[] = []
  const refused: string[] = []
  let failure: Failure | null = null

  const server = createServer(async (req, res) => {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    try {
      const message = await verify(Buffer.concat(parts), req.headers, RECEIVER_SECRET, {
        toleranceSeconds: 7_200,
      })
      const { cursor, customerId, productId, environment } = message.data
      if (environment !== 'sandbox') refused.push(`a message about ${environment}`)
      // Not each one fails, so that some overtake others where nothing prevents it.
      const met = failure !== null && chance.is(0.7) ? failure : null
      if (met === 'silence') return
      if (met === 'cut') return void req.socket.destroy()
      if (met === 'error') return void res.writeHead(500).end()
      if (met === 'limit')
        return void res
          .writeHead(429, { 'retry-after': String(chance.below(lasting(300_000) / 1_000)) })
          .end()
      taken.push({ id: message.id, cursor, customerId, productId })
      // After it has taken it: nobody else can keep the order of one that takes it later.
      if (met === 'slow') await new Promise((resolve) => setTimeout(resolve, lasting(TOO_LATE_MS)))
      res.writeHead(204).end()
    } catch (error) {
      // A machine that slept sends what it signed before.
      if (!(error instanceof WebhookError && error.code === 'timestamp_out_of_tolerance')) {
        refused.push(String(error))
      }
      res.writeHead(400).end()
    }
  })
  const listening = runAs(createProcess(`receiver ${id}`), () => {
    server.listen(0, '127.0.0.1')
    return once(server, 'listening')
  })
  await listening
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    id,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    taken,
    refused,
    failAs(next) {
      failure = next
    },
    recover() {
      failure = null
    },
  }
}
