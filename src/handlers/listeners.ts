import type { RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ApiKey, localKey } from './api-key.js'
import { createAuthenticate, createClientAddress, createFailureLimit } from './authenticate.js'
import { openMetrics } from './health.js'
import { createListener, mountRoutes } from './mount.js'
import type { MountDeps } from './route.js'
import { createApi, type RouteDeps } from './routes.js'
import { createServer, type ListenAt, type RunningServer } from './server.js'

interface Address {
  readonly host: string
  readonly port: number
}

export interface ListenersDeps extends Omit<RouteDeps & MountDeps, 'authenticate' | 'clientAddress'> {
  readonly addresses: Address & {
    readonly trustProxy: number
    readonly webhooks: Address | null
    readonly metrics: Address | null
  }
  /** Opens none of the addresses and no socket: only `connect` leads here. */
  readonly isPrivate?: boolean
  /** Where the same API is served to this machine's own user, without a key; null: nowhere. */
  readonly socketFile: string | null
  /** Asked at every request, since a reload may change them. */
  readonly apiKeys: () => readonly ApiKey[]
}

export interface Listeners {
  /** Empty, as those that follow, where nothing is open. */
  readonly url: string
  /** The main listener's where they have none of their own. */
  readonly webhooksUrl: string
  readonly metricsUrl: string
  /** A connection from within this process to the same API, with all rights. */
  connect(): Duplex
  stop(): Promise<void>
}

/** Opens every listener that is configured. One of its own serves nothing else; webhooks then have no other. */
export async function startListeners(deps: ListenersDeps): Promise<Listeners> {
  const { addresses, metrics, log } = deps
  const own = { ...deps, clientAddress: createClientAddress(addresses.trustProxy) }
  const hasDeliveries = addresses.webhooks === null
  const authenticate = createAuthenticate({ ...own, failures: createFailureLimit() })
  const api = createApi({ ...own, authenticate }, hasDeliveries)
  const key = localKey()
  const local = createApi({ ...own, authenticate: () => key }, hasDeliveries)
  const { connect, stop: stopPrivate } = createServer({ handle: local.all })
  if (deps.isPrivate) return { url: '', webhooksUrl: '', metricsUrl: '', connect, stop: stopPrivate }

  // One line in a minute: anybody can open connections.
  const drops = createFailureLimit({ failures: 1 })
  const onDropped = (): void => {
    metrics.connectionDropped()
    if (!drops('').limited) log.warn('a connection was closed: there are too many on its listener')
  }

  const running: RunningServer[] = []
  const listen = async (at: ListenAt, handle: RequestListener): Promise<string> => {
    const server = await createServer({ handle, onDropped }).listen(at)
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
      webhooksUrl: addresses.webhooks ? await listen(addresses.webhooks, api.delivered) : url,
      metricsUrl: addresses.metrics
        ? await listen(
            addresses.metrics,
            createListener(mountRoutes([openMetrics], { ...own, authenticate }), log),
          )
        : url,
      connect,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
