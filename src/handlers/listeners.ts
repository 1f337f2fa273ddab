import type { RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ApiKey, localKey } from './api-key.js'
import {
  type Authenticate,
  createAuthenticate,
  createClientAddress,
  createFailureLimit,
} from './authenticate.js'
import { openMetrics } from './health.js'
import { createListener, createShortcut, type MountedPath, mountRoutes } from './mount.js'
import type { MountDeps } from './route.js'
import { ROUTES, type RouteDeps } from './routes.js'
import { createServer, type ListenAt, type RunningServer } from './server.js'
import { type SyncDeps, syncRoutes } from './sync.js'

export interface Address {
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
  readonly sync: SyncDeps['sync']
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
  const clientAddress = createClientAddress(addresses.trustProxy)
  const api = createApi(deps, createAuthenticate({ ...deps, clientAddress, failures: createFailureLimit() }))
  const key = localKey()
  const local = createApi(deps, () => key)
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
            createListener(mountRoutes([openMetrics], { ...deps, authenticate: () => key }), log),
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

/** Where deliveries come; on a listener of their own nothing else is served, and they have no other. */
const DELIVERED = ['/webhooks/:endpoint', '/platforms/telegram/updates']

/** All that one listener serves, to whom `authenticate` lets in; apart from it, what only delivers. */
function createApi(deps: ListenersDeps, authenticate: Authenticate) {
  const { addresses, log } = deps
  const clientAddress = createClientAddress(addresses.trustProxy)
  const table = mountRoutes(ROUTES, { ...deps, authenticate, clientAddress })
  const pathNamed = (name: string) => table.find(({ path }) => path === name) as MountedPath
  const takeWebhook = createShortcut(pathNamed('/webhooks/:endpoint'))
  const takeQuestion = createShortcut(pathNamed('/entitlements/:customerId'), ['GET', 'HEAD'])
  const hasDeliveries = addresses.webhooks === null
  const delivered = table.filter(({ path }) => DELIVERED.includes(path))
  const others = table.filter((one) => !delivered.includes(one))
  const all = createListener(
    [...(hasDeliveries ? table : others), ...syncRoutes({ ...deps, authenticate }, log)],
    log,
    hasDeliveries ? [takeWebhook, takeQuestion] : [takeQuestion],
  )
  return { all, delivered: createListener(delivered, log, [takeWebhook]) }
}
