/* GET /changes/stream: the change log as server-sent events. */

import type { Writable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { createFailureLimit } from '../failure-limit.js'
import type { Environment } from '../provider/event.js'
import { type ChangePageQuery, type ListedChange, laterCursor } from '../store/changes.js'
import { toJson } from './answers.js'
import type { ApiKey } from './api-key.js'
import { changeAnswer, withFeatures } from './changes.js'
import { type MountDeps, READ, route, type Stream } from './route.js'
import { factsOf, outliveRequest } from './server.js'

/** Proxies usually cut a connection that is silent for a minute; `src/client` takes 20 seconds without one for a cut. */
const HEARTBEAT_MS = 15_000
/** How long a client waits before it connects again. */
const RETRY_MS = 2_000
/** Changes read at once, which bounds what is buffered for a slow client. */
const PAGE = 100
const LIMITS = {
  /** Each holds a file descriptor, and 10 KiB (measured with 2,000; 25 with an access log). */
  streams: 5_000,
  /** The last places are for keys with few streams: no key can keep out the others, of which 25 or more get in. */
  kept: 500,
  few: 20,
}

export interface Client {
  /** Of its key. */
  readonly keyName: string
  readonly out: Writable
  readonly environment: Environment
  /** False once its key is gone or has expired. */
  readonly mayRead: () => boolean
  /** By the monotonic clock, before anything was read for it. */
  readonly openedAt: number
  /** The change log up to here was sent. */
  cursor: string
  /** A comment is due: it says that everything stored before it was sent. */
  owesComment: boolean
}

interface ChangeStreamDeps extends Pick<MountDeps, 'catalog' | 'log'> {
  readonly readChangePage: (query: ChangePageQuery) => Promise<readonly ListedChange[] | null>
  /** Rejects with `store_unavailable` if the store can't answer. */
  readonly readEnd: () => Promise<StreamEnd>
}

/** The end of the change log, as clients may see it. */
export interface StreamEnd {
  readonly cursor: string
  /** Whether more is stored, which nobody may see yet. */
  readonly isBehind: boolean
}

/**
 * Sends the change log to any number of clients. Each one's cursor is all that is kept of it: what it has missed, or
 * was too slow for, is read from the store. Clients with the same cursor share the reads.
 */
export function createChangeStream(
  { readChangePage, readEnd, catalog, log }: ChangeStreamDeps,
  limits = LIMITS,
) {
  const readChanges = async (query: ChangePageQuery) => withFeatures(await readChangePage(query), catalog())
  const clients = new Set<Client>()
  /** Those that will be clients soon: many may come at once. */
  const opening = new Set<Pick<Client, 'keyName'>>()
  // A line a minute for each key: a client that is refused comes back every few seconds.
  const refusals = createFailureLimit({ failures: 1 })
  let isWoken = false
  let isStopped = false
  let sending: Promise<void> | null = null
  const heartbeat = setInterval(() => {
    for (const client of clients) client.owesComment = true
    wake()
  }, HEARTBEAT_MS).unref()

  /** The log has grown, or keys have changed, or a client can take more. Cheap, and never throws. */
  function wake(): void {
    isWoken = true
    if (clients.size > 0) sending ??= sendAll()
  }

  async function sendAll(): Promise<void> {
    while (isWoken && clients.size > 0) {
      isWoken = false
      for (const client of clients) if (!client.mayRead()) leave(client)
      // After a failure the next commit tries again, or the next heartbeat.
      await sendNext().catch((err: unknown) => {
        if (!isLatchkeyError(err, 'store_unavailable')) log.error({ err }, 'could not stream changes')
      })
    }
    sending = null
  }

  async function sendNext(): Promise<void> {
    const askedAt = performance.now()
    // Before the newest cursor: a client that comes meanwhile may be ahead of it. Its own wake serves it.
    const ready = [...clients].filter(({ out }) => !out.writableNeedDrain)
    // Before the changes: an empty page then means that there is nothing up to here.
    const end = await readEnd()
    const behind = ready.filter(({ cursor }) => cursor !== end.cursor)
    const complete = ready.filter(({ cursor }) => cursor === end.cursor)
    if (!end.isBehind) sayComplete(complete, askedAt)
    const groups = Map.groupBy(behind, ({ environment, cursor }) => `${environment} ${cursor}`)
    for (const group of groups.values()) {
      await sendPage(group, end, askedAt).catch((err: unknown) => {
        if (isLatchkeyError(err, 'store_unavailable')) throw err
        // The other clients can go on.
        if (!isLatchkeyError(err, 'cursor_reset'))
          log.error({ err }, 'could not stream changes, ended streams')
        for (const client of group) leave(client)
      })
      await turn()
    }
  }

  async function sendPage(group: readonly Client[], end: StreamEnd, askedAt: number): Promise<void> {
    const [{ environment, cursor: after }] = group as [Client]
    const changes = await readChanges({ environment, after, upTo: end.cursor, limit: PAGE })
    const events = Buffer.from(changes.map(eventOf).join(''))
    for (const client of group) {
      if (!clients.has(client)) continue
      client.cursor = changes.at(-1)?.cursor ?? laterCursor(after, end.cursor)
      if (events.length > 0) client.out.write(events)
    }
    if (changes.length === PAGE) isWoken = true
    else if (!end.isBehind) sayComplete(group, askedAt)
  }

  /** Only what was stored before the read was certainly in it, so that is the instant named. */
  function sayComplete(group: readonly Client[], askedAt: number): void {
    for (const client of group) {
      if (!client.owesComment || !clients.has(client)) continue
      client.owesComment = false
      client.out.write(`: ${Math.floor(askedAt - client.openedAt)}\n\n`)
    }
  }

  function leave(client: Client): void {
    if (!clients.delete(client)) return
    // The end would wait behind what a slow client has not taken.
    if (client.out.writableLength > 0) client.out.destroy()
    else client.out.end()
  }

  async function begin(environment: Environment, after: string | null) {
    if (after !== null) await readChanges({ environment, after, limit: 1 })
    return { openedAt: performance.now(), cursor: after ?? (await readEnd()).cursor }
  }

  function assertRoom(keyName: string): void {
    const held = clients.size + opening.size
    if (held < limits.streams - limits.kept) return
    const own = [...clients, ...opening].filter((one) => one.keyName === keyName).length
    if (held < limits.streams && own < limits.few) return
    const { streams, kept, few } = limits
    const message =
      held < streams
        ? `This key has ${own} streams, and the last ${kept} of ${streams} are kept for keys with fewer than ${few}`
        : `${streams} streams are open`
    if (!refusals(keyName).limited)
      log.warn({ keyName, own, open: held }, 'refused a stream: too many are open')
    throw new LatchkeyError('too_many_streams', `${message}: close some, or ask GET /changes instead.`)
  }

  return {
    wake,
    /**
     * @param after null: from now on
     * @throws LatchkeyError `cursor_reset`, `too_many_streams`, `store_unavailable`
     */
    async open({
      after,
      ...asked
    }: Pick<Client, 'keyName' | 'environment' | 'mayRead'> & {
      readonly after: string | null
    }): Promise<Stream> {
      const { keyName, environment } = asked
      assertRoom(keyName)
      const place = { keyName }
      opening.add(place)
      const { openedAt, cursor } = await begin(environment, after).finally(() => opening.delete(place))
      return (res) => {
        if (res.destroyed) return
        // The body ends with the connection, instead of coming in chunks.
        res.removeHeader('Transfer-Encoding')
        res.writeHead(200, {
          'Content-Type': EVENT_STREAM,
          'Cache-Control': 'no-store',
          'X-Request-Id': factsOf(res.req).id,
          // Otherwise nginx would hold events back.
          'X-Accel-Buffering': 'no',
          Connection: 'close',
        })
        // With its first id a client misses nothing, even if it loses the connection before the first change.
        res.write(`retry: ${RETRY_MS}\nid: ${cursor}\n\n`)
        outliveRequest(res, (out) => {
          const opened = { ...asked, out, openedAt, cursor, owesComment: true }
          clients.add(opened)
          out.on('drain', wake).on('close', () => clients.delete(opened))
          if (isStopped) leave(opened)
          wake()
        })
      }
    },
    /** Ends every stream; clients go on at their cursors after the restart. */
    async stop(): Promise<void> {
      isStopped = true
      clearInterval(heartbeat)
      for (const client of clients) leave(client)
      await sending
    },
  }
}

function eventOf(change: ReturnType<typeof withFeatures>[number]): string {
  return `id: ${change.cursor}\nevent: change\ndata: ${JSON.stringify(toJson(changeAnswer, change))}\n\n`
}

const EVENT_STREAM = 'text/event-stream'

export interface ChangeStreamRouteDeps extends MountDeps {
  readonly changeStream: Pick<ReturnType<typeof createChangeStream>, 'open'>
  /** Called each time, since a reload may change them. */
  readonly apiKeys: () => readonly ApiKey[]
}

export const changeStreamRoute = route('GET /changes/stream', {
  operationId: 'streamChanges',
  summary: 'The change log as server-sent events, each with a Change as its data.',
  ...READ,
  query: z.object({
    cursor: z
      .string()
      .optional()
      .describe('Begins after this change, or answer about access; now if omitted.'),
  }),
  takesLastEventId: true,
  isLast: true,
  answer: EVENT_STREAM,
  errors: ['cursor_reset', 'too_many_streams'],
  hasNoHead: true,
  handle(
    { query: { cursor = null }, lastEventId, environment, key },
    { changeStream, apiKeys, clock }: ChangeStreamRouteDeps,
  ) {
    const mayRead = () =>
      (key.expiresAt === null || key.expiresAt > clock()) &&
      apiKeys().some(
        ({ sha256, scopes, environments, expiresAt }) =>
          sha256 === key.sha256 &&
          scopes.includes(READ.scope) &&
          environments.includes(environment) &&
          (expiresAt === null || expiresAt > clock()),
      )
    return changeStream.open({ keyName: key.name, environment, after: lastEventId ?? cursor, mayRead })
  },
})
