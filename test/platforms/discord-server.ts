import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { callOf, type DiscordCall, requestOf, send, sendLimited } from './discord-calls.js'
import { createGuild, type LocalGuild } from './discord-guild.js'
import { BOT_TOKEN, GUILD_ID } from './discord-ids.js'
import { type Bucket, createLimits, type ForcedLimit } from './discord-limits.js'
import {
  type AuditEntry,
  answerCall,
  type DiscordRouteName,
  type RoutedRequest,
  refusal,
  routeOf,
} from './discord-routes.js'

/** Far above what a test calls, so that a limit is met only where a test sets one. */
const WIDE_BUCKET: Bucket = { limit: 10_000, perMs: 1_000 }

export interface DiscordOptions {
  readonly buckets?: Partial<Record<DiscordRouteName, Bucket>>
  /** Of all calls; the real one allows 50. */
  readonly globalPerSecond?: number
  /** Takes what ends it; by default it ends with the test. */
  readonly atEnd?: (end: () => Promise<void>) => void
  /** Hears what the bot changes, as it does, and when it asked for it, in epoch milliseconds. */
  readonly onEntry?: (entry: AuditEntry, askedAt: number) => void
}

/**
 * How it stands with the platform. `refuse`: nobody listens. `hang`: takes calls and never answers. `hang-in-body`:
 * begins an answer. `lose-answers`: does what is asked and hangs up. `status`: fails without doing anything.
 * `answer`: something else stands in its place. `slowMs`: does and answers so much later. `once`: does and answers
 * the calls of a route once that is resolved, and others at once.
 */
export type DiscordState =
  | 'up'
  | 'refuse'
  | 'hang'
  | 'hang-in-body'
  | 'lose-answers'
  | { readonly status: number }
  | { readonly answer: ForeignAnswer }
  | { readonly slowMs: number }
  | { readonly once: Promise<void>; readonly route: DiscordRouteName }

export interface ForeignAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface LocalDiscord {
  /** What `sync.discord.apiUrl` takes. */
  readonly url: string
  readonly calls: readonly DiscordCall[]
  readonly auditLog: readonly AuditEntry[]
  /** The guild that there is from the beginning: `GUILD_ID`. */
  readonly guild: LocalGuild
  addGuild(id: string, name?: string): LocalGuild
  /** Discord knows no such account any more. */
  forgetAccount(accountId: string): void
  /** The one token that is accepted from now on. */
  setToken(token: string): void
  setState(state: DiscordState): Promise<void>
  limit(limit: ForcedLimit): void
  invalidRequests(): number
}

/** A server that speaks Discord's API as far as roles need it. */
export async function startDiscord({
  buckets = {},
  globalPerSecond = 50,
  atEnd = onTestFinished,
  onEntry = () => {},
}: DiscordOptions = {}): Promise<LocalDiscord> {
  const guild = createGuild(GUILD_ID)
  const guilds = new Map([[GUILD_ID, guild]])
  const unknownAccounts = new Set<string>()
  const auditLog: AuditEntry[] = []
  const world = { guilds, unknownAccounts, auditLog }
  const calls: DiscordCall[] = []
  const limits = createLimits(
    {
      self: WIDE_BUCKET,
      guild: WIDE_BUCKET,
      members: WIDE_BUCKET,
      member: WIDE_BUCKET,
      role: WIDE_BUCKET,
      ...buckets,
    },
    globalPerSecond,
  )
  let token = BOT_TOKEN
  let state: DiscordState = 'up'

  const perform = (call: DiscordCall, routed: RoutedRequest) =>
    answerCall(requestOf(call), routed, { ...world, onEntry: (entry) => onEntry(entry, call.at) })

  function answerAsDiscord(req: IncomingMessage, res: ServerResponse, call: DiscordCall): void {
    const routed = routeOf(call)
    if (req.headers.authorization !== `Bot ${token}`) {
      send(res, call, refusal(401, 0, '401: Unauthorized'))
    } else if (routed === null) {
      send(res, call, refusal(404, 0, '404: Not Found'))
    } else {
      const verdict = limits.count(routed, call.at)
      call.isEarly = verdict.isEarly
      if (verdict.waitMs !== null) sendLimited(res, call, verdict, verdict.waitMs)
      else send(res, call, perform(call, routed), verdict.headers)
    }
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const call = callOf(req)
    calls.push(call)
    req.resume()
    if (state === 'hang') return
    if (state === 'hang-in-body') {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
      res.write('{')
    } else if (state === 'lose-answers') {
      const routed = routeOf(call)
      if (routed) perform(call, routed)
      req.socket.destroy()
    } else if (typeof state === 'object' && 'status' in state) {
      send(res, call, { status: state.status, body: { message: 'Internal Server Error', code: 0 } })
    } else if (typeof state === 'object' && 'answer' in state) {
      const { status, headers = {}, body = '' } = state.answer
      call.status = status
      res.writeHead(status, headers).end(body)
    } else {
      if (typeof state === 'object' && 'slowMs' in state) await wait(state.slowMs, undefined, { ref: false })
      else if (typeof state === 'object' && state.route === call.route) await state.once
      answerAsDiscord(req, res, call)
    }
  }

  const server = createServer((req, res) => {
    void answer(req, res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  async function close(): Promise<void> {
    server.closeAllConnections()
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  atEnd(close)

  return {
    url: `http://127.0.0.1:${port}/api`,
    calls,
    auditLog,
    guild,
    addGuild(id, name) {
      const added = createGuild(id, name)
      guilds.set(id, added)
      return added
    },
    forgetAccount: (accountId) => unknownAccounts.add(accountId),
    setToken(accepted) {
      token = accepted
    },
    async setState(next) {
      state = next
      if (next === 'refuse') await close()
      else if (!server.listening) {
        server.listen(port, '127.0.0.1')
        await once(server, 'listening')
      }
    },
    limit: limits.force,
    invalidRequests: () => calls.filter(({ isInvalid }) => isInvalid).length,
  }
}
