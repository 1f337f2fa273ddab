import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer as createProbe } from 'node:net'
import type { Logger } from 'pino'
import { createFailureLimit } from '../failure-limit.js'
import { type ApiKey, localKey } from './api-key.js'
import { type Authenticate, createClientAddress, createKeyring } from './authenticate.js'
import { createLinks } from './console/sessions.js'
import { createConsole } from './console.js'
import { openMetrics } from './health.js'
import { createListener, mountRoutes } from './mount.js'
import { createApi, type Receive, type RouteDeps } from './routes.js'
import { createServer, factsOf, type ListenAt, type RunningServer } from './server.js'

interface Address {
  readonly host: string
  readonly port: number
}

export interface ListenersDeps extends Omit<RouteDeps, 'authenticate' | 'clientAddress' | 'links'> {
  readonly addresses: Address & {
    readonly trustProxy: number
    /** Logs a line for each request. */
    readonly accessLog?: boolean
    readonly webhooks: Address | null
    readonly metrics: Address | null
  }
  /** If omitted, requests are not traced. */
  readonly traced?: (handle: RequestListener) => RequestListener
  /** Serves the same API to this machine's own user, without a key; null: no socket. */
  readonly socketFile: string | null
  /** Called for each request, since a reload may change them. */
  readonly apiKeys: () => readonly ApiKey[]
  /** Called for each request with one of them. */
  readonly keyUsed: (key: ApiKey) => void
  /** Seals the console's sessions. Rejects with `store_unavailable`. */
  readonly consoleSecret: () => Promise<Buffer>
}

export type Listeners = Awaited<ReturnType<typeof startListeners>>

/** Throws the system's error if an address can't be listened on. For a first start, which would leave a database. */
export async function assertCanListen({ webhooks, metrics, ...api }: ListenersDeps['addresses']) {
  for (const address of [api, webhooks, metrics]) {
    if (address === null) continue
    const probe = createProbe().listen(address.port, address.host)
    await once(probe, 'listening')
    probe.close()
    await once(probe, 'close')
  }
}

/** Opens every configured listener. A listener for webhooks alone moves them off the main one. */
export async function startListeners(deps: ListenersDeps) {
  const { addresses, metrics, log } = deps
  const links = createLinks(deps.clock)
  const own = { ...deps, links, clientAddress: createClientAddress(addresses.trustProxy) }
  const hasDeliveries = addresses.webhooks === null
  const keyring = createKeyring(own)
  const { authenticate } = keyring
  const key = localKey()
  const takeConsole = createConsole({
    ...own,
    keyring,
    trustProxy: addresses.trustProxy,
    localKey: key,
    secret: deps.consoleSecret,
    openApi: (authenticate) => {
      const apiKeys = () => [...deps.apiKeys(), key]
      return createApi({ ...own, authenticate, apiKeys }, false).all
    },
  })
  const api = createApi({ ...own, authenticate }, hasDeliveries, deps.hasConsole ? takeConsole : undefined)
  const authenticateLocally: Authenticate = (req) => {
    factsOf(req).keyName = key.name
    return key
  }
  const local = createApi({ ...own, authenticate: authenticateLocally, apiKeys: () => [key] }, hasDeliveries)
  // None of these many lines can hold what is redacted elsewhere: looking for that takes 30 µs a line.
  const lines = addresses.accessLog ? log.child({}, { redact: [], level: 'info' }) : null
  const watched = (handle: RequestListener): RequestListener => {
    const traced = deps.traced?.(handle) ?? handle
    return lines === null ? traced : logged(traced, lines)
  }
  const receive: Receive = (req, res, endpoint) =>
    watched((...request) => api.receive(...request, endpoint))(req, res)

  // One line a minute: anybody can open connections.
  const drops = createFailureLimit({ failures: 1 })
  const onDropped = (): void => {
    metrics.connectionDropped()
    if (!drops('').limited) log.warn('closed a connection: its listener has too many')
  }

  const running: RunningServer[] = []
  const listen = async (at: ListenAt, handle: RequestListener): Promise<string> => {
    const server = await createServer({ handle: watched(handle), onDropped }).listen(at)
    running.push(server)
    return server.url
  }
  const stop = async (): Promise<void> => {
    await Promise.all(running.map((server) => server.stop()))
  }
  try {
    const url = await listen(addresses, api.all)
    if (deps.socketFile !== null) await listen({ socketFile: deps.socketFile }, local.all)
    return {
      url,
      /** The main listener's if they have none of their own. */
      webhooksUrl: addresses.webhooks ? await listen(addresses.webhooks, api.delivered) : url,
      metricsUrl: addresses.metrics
        ? await listen(
            addresses.metrics,
            createListener(mountRoutes([openMetrics], { ...own, authenticate }), log),
          )
        : url,
      receive,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * Logs each request when it has ended. No part of it is personal data: the route instead of the path, no query and no
 * address.
 */
function logged(handle: RequestListener, lines: Logger): RequestListener {
  return (req, res) => {
    const startedAt = performance.now()
    res.on('close', () => {
      const { id: requestId, route, keyName, endpoint, bytes, traceId } = factsOf(req)
      lines.info(
        {
          requestId,
          method: req.method,
          route,
          status: res.statusCode,
          ms: Math.round((performance.now() - startedAt) * 100) / 100,
          bytes,
          ...(keyName !== null && { keyName }),
          ...(endpoint !== null && { endpoint }),
          ...(traceId !== null && { traceId }),
          ...(!res.writableFinished && { aborted: true }),
        },
        'request',
      )
    })
    handle(req, res)
  }
}
