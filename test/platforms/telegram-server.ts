import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { BotApiError } from './telegram-errors.js'
import { createGroup, type LocalGroup } from './telegram-group.js'
import { createMethods, type SentMessage } from './telegram-methods.js'
import { createUpdatesQueue, type UpdatesQueue } from './telegram-updates.js'

export const BOT_TOKEN = '7000001:AAE-Local_Secret_Which_Nobody_May_Ever_See'

export interface ReceivedCall {
  readonly method: string
  readonly payload: Readonly<Record<string, unknown>>
  /** Epoch milliseconds, by this server's clock. */
  readonly at: number
  readonly status: number
  /**
   * It came before a wait was over that an earlier answer on its connection had asked for. A call on another connection
   * may have been sent before that answer came.
   */
  readonly isEarly: boolean
}

/** What is answered instead, `times` times, to calls of a method or to any. */
export interface Fault {
  readonly method?: string
  readonly times?: number
  /** `foreign`: JSON that is not Telegram's. */
  readonly answer: 'close' | 'silence' | 'redirect' | 'foreign' | BotApiError
  /** The call is carried out all the same: only its answer is lost. */
  readonly isDone?: true
}

export interface LocalTelegram {
  readonly url: string
  readonly updates: UpdatesQueue
  readonly sent: readonly SentMessage[]
  /** Without polls for updates, unless asked for. */
  calls(method?: string): readonly ReceivedCall[]
  /** With an id like `-1001234`; one without `-100` is a basic group. */
  addGroup(id: number): LocalGroup
  /** A message to the bot, by itself. */
  say(userId: number, text: string): void
  fail(fault: Fault): void
  /** The next call is told to wait; whoever calls before that is told again, and noted. */
  limit(seconds: number): void
  /** From now on no other token counts. */
  revokeToken(): void
  isDown: boolean
  stop(): Promise<void>
}

/**
 * Telegram's Bot API on a free port, as far as Latchkey uses it.
 * @param atEnd takes what ends it; by default it ends with the test
 */
export async function startTelegram(
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
): Promise<LocalTelegram> {
  const groups = new Map<number, LocalGroup>()
  const updates = createUpdatesQueue()
  const sent: SentMessage[] = []
  const calls: ReceivedCall[] = []
  const perform = createMethods({ groups, updates, sent: (message) => sent.push(message) })
  let faults: Fault[] = []
  let token = BOT_TOKEN
  let waitSeconds: number | null = null
  let limitedUntil = 0
  /** Until when the newest answer on a connection asked to wait. */
  const askedToWait = new WeakMap<Socket, number>()

  function nextFault(method: string): Fault | undefined {
    const found = faults.find((fault) => fault.method === undefined || fault.method === method)
    if (found === undefined) return undefined
    const { times = 1 } = found
    faults = faults.flatMap((fault) => {
      if (fault !== found) return [fault]
      return times > 1 ? [{ ...fault, times: times - 1 }] : []
    })
    return found
  }

  async function resultOf(sentToken: string, method: string, payload: Record<string, unknown>, at: number) {
    if (sentToken !== token) throw new BotApiError(401, 'Unauthorized')
    if (waitSeconds !== null) limitedUntil = at + waitSeconds * 1_000
    waitSeconds = null
    if (at < limitedUntil) {
      const left = Math.ceil((limitedUntil - at) / 1_000)
      throw new BotApiError(429, `Too Many Requests: retry after ${left}`, { retry_after: left })
    }
    return perform(method, payload)
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const at = Date.now()
    const body = await bodyOf(req)
    const [, sentToken = '', method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(req.url ?? '') ?? []
    const payload = body === '' ? {} : (JSON.parse(body) as Record<string, unknown>)
    const isEarly = at < (askedToWait.get(req.socket) ?? 0)
    const note = (status: number) => calls.push({ method, payload, at, status, isEarly })
    const fault = server.isDown ? ({ answer: 'close' } as const) : nextFault(method)
    if (fault !== undefined && !(fault.answer instanceof BotApiError)) {
      // Whatever it came to: nobody hears of it.
      if (fault.isDone) await perform(method, payload).catch(() => {})
      note(0)
      if (fault.answer === 'close') res.destroy()
      if (fault.answer === 'foreign') send(res, 502, { message: 'Bad Gateway' })
      if (fault.answer === 'redirect') res.writeHead(302, { location: `/elsewhere${req.url}` }).end()
      return
    }
    try {
      if (fault !== undefined) throw fault.answer
      const result = await resultOf(sentToken, method, payload, at)
      note(200)
      send(res, 200, { ok: true, result })
    } catch (error) {
      const failure =
        error instanceof BotApiError ? error : new BotApiError(500, `Internal: ${String(error)}`)
      const { status, message: description, parameters } = failure
      note(status)
      if (status === 429) askedToWait.set(req.socket, limitedUntil)
      const told = Object.keys(parameters).length === 0 ? {} : { parameters }
      send(res, status, { ok: false, error_code: status, description, ...told })
    }
  }

  const http = createServer((req, res) => void answer(req, res))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const stop = async (): Promise<void> => {
    updates.close()
    http.closeAllConnections()
    await new Promise<void>((resolve) => http.close(() => resolve()))
  }
  atEnd(stop)

  const server: LocalTelegram = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    updates,
    sent,
    calls: (method) =>
      calls.filter(
        (call) =>
          (method ?? call.method) === call.method && (method !== undefined || call.method !== 'getUpdates'),
      ),
    addGroup(id) {
      const made = createGroup(id, updates.emit, Date.now)
      // Looked up by every id that it ever had.
      const upgrade = made.upgrade
      groups.set(id, made)
      made.upgrade = () => {
        upgrade()
        groups.set(made.id, made)
      }
      return made
    },
    say: (userId, text) =>
      updates.emit({
        message: {
          message_id: 1,
          date: Math.floor(Date.now() / 1_000),
          chat: { id: userId, type: 'private', first_name: 'Somebody' },
          from: { id: userId, is_bot: false, first_name: 'Somebody' },
          text,
        },
      }),
    fail: (fault) => faults.push(fault),
    limit: (seconds) => {
      waitSeconds = seconds
    },
    revokeToken: () => {
      token = 'another'
    },
    isDown: false,
    stop,
  }
  return server
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function send(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json' })
  res.end(JSON.stringify(body))
}
