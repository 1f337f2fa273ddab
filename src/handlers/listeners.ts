import type { RequestListener } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import type { Delivery, Receipt } from '../ingest/delivery.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { type ApiKey, localKey } from './api-key.js'
import {
  type Authenticate,
  createAuthenticate,
  createClientAddress,
  createFailureLimit,
} from './authenticate.js'
import type { CustomerQuestions } from './customer-questions.js'
import { customerRoutes } from './customers.js'
import type { EraseDeps } from './erase-customer.js'
import { eventRoutes, type StoredEventQuestions } from './events.js'
import {
  type AccessDeps,
  type EntitlementDeps,
  type EntitlementsDeps,
  type ExplanationDeps,
  getEntitlement,
  getEntitlements,
  getExplanation,
} from './get-entitlements.js'
import { type HealthDeps, openMetrics } from './health.js'
import { type ImportsDeps, postImport } from './imports.js'
import { type JoinLinksDeps, postInvites, postLinkToken } from './join-links.js'
import type { ManualActDeps } from './manual-act.js'
import { manualRoutes } from './manual-routes.js'
import type { RequestMetrics } from './metrics.js'
import { createListener, createShortcut, mountRoutes } from './mount.js'
import { createRoute } from './raw-route.js'
import { type RebuildsDeps, rebuildRoutes } from './rebuilds.js'
import { type ReplaysDeps, replayRoutes } from './replays.js'
import type { RawHandler } from './route.js'
import { ROUTES } from './routes.js'
import { createServer, type ListenAt, type RunningServer } from './server.js'
import { type SyncDeps, syncRoutes } from './sync.js'
import { postTelegramUpdate, TELEGRAM_UPDATES_PATH } from './telegram-updates.js'
import { receiveWebhook } from './webhooks.js'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface ListenersDeps {
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
  readonly endpointNamed: (name: string) => Endpoint | undefined
  readonly endpointNames: () => readonly string[]
  readonly environments: () => readonly Environment[]
  readonly apiKeys: () => readonly ApiKey[]
  readonly ingest: (delivery: Delivery) => Promise<Receipt>
  readonly readAccess: AccessDeps['readAccess']
  readonly keptAnswers: EntitlementsDeps['keptAnswers']
  readonly entitlementFor: EntitlementDeps['entitlementFor']
  readonly customers: CustomerQuestions
  readonly storedEvents: StoredEventQuestions
  readonly performAct: ManualActDeps['performAct']
  readonly erase: EraseDeps['erase']
  readonly readExplanation: ExplanationDeps['readExplanation']
  readonly rebuilds: Omit<RebuildsDeps, 'authenticate'>
  readonly examine: HealthDeps['examine']
  readonly replays: ReplaysDeps['replays']
  readonly importLines: ImportsDeps['importLines']
  readonly messenger: JoinLinksDeps['messenger']
  readonly sync: SyncDeps['sync']
  readonly isWriterAlive: () => boolean
  readonly readiness: HealthDeps['readiness']
  readonly clock: () => number
  readonly metrics: RequestMetrics
  readonly log: Logger
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

/** All that one listener serves, to whom `authenticate` lets in; apart from it, what only delivers. */
function createApi(deps: ListenersDeps, authenticate: Authenticate) {
  const { addresses, log } = deps
  const { webhooks, access, aboutProducts } = createRoutes(deps, authenticate)
  const clientAddress = createClientAddress(addresses.trustProxy)
  const updates = postTelegramUpdate({ ...deps, clientAddress })
  const delivered = [webhooks, createRoute(TELEGRAM_UPDATES_PATH, updates, log)]
  const takeWebhook = createShortcut(webhooks)
  const takeQuestion = createShortcut(access, ['GET', 'HEAD'])
  const hasDeliveries = addresses.webhooks === null
  const all = createListener(
    [
      ...(hasDeliveries ? delivered : []),
      ...customerRoutes({ ...deps, authenticate }, log),
      access,
      ...aboutProducts,
      ...eventRoutes({ ...deps, authenticate }, log),
      ...rebuildRoutes({ ...deps.rebuilds, authenticate }, log),
      ...replayRoutes({ ...deps, authenticate }, log),
      ...manualRoutes({ ...deps, authenticate }, log),
      ...syncRoutes({ ...deps, authenticate }, log),
      createRoute('/customers/:customerId/link-tokens', postLinkToken({ ...deps, authenticate }), log),
      createRoute('/customers/:customerId/invites', postInvites({ ...deps, authenticate }), log),
      createRoute('/imports', postImport({ ...deps, authenticate }), log),
      ...mountRoutes(ROUTES, { ...deps, authenticate }),
    ],
    log,
    hasDeliveries ? [takeWebhook, takeQuestion] : [takeQuestion],
  )
  return { all, delivered: createListener(delivered, log, [takeWebhook]) }
}

function createRoutes(deps: ListenersDeps, authenticate: Authenticate) {
  const { metrics, log } = deps
  const asked = { ...deps, authenticate }
  const webhooks = receiveWebhook({
    ...deps,
    failures: createFailureLimit(),
    clientAddress: createClientAddress(deps.addresses.trustProxy),
  })
  const timing = (route: Parameters<RequestMetrics['observeDuration']>[0]) => (seconds: number) =>
    metrics.observeDuration(route, seconds)
  return {
    webhooks: createRoute('/webhooks/:endpoint', timed(webhooks, timing('webhooks')), log),
    access: createRoute(
      '/entitlements/:customerId',
      timed(getEntitlements(asked), timing('entitlements')),
      log,
    ),
    aboutProducts: [
      createRoute(
        '/entitlements/:customerId/:productId',
        timed(getEntitlement(asked), timing('entitlement')),
        log,
      ),
      createRoute('/entitlements/:customerId/:productId/explanation', getExplanation(asked), log),
    ],
  }
}

/** Measures a handler, failures included. `observe` gets seconds. */
function timed<Param extends string>(
  handler: RawHandler<Param>,
  observe: (seconds: number) => void,
): RawHandler<Param> {
  return (req, res, params) => {
    const startedAt = performance.now()
    const end = (): void => observe((performance.now() - startedAt) / 1000)
    let answering: Promise<void> | undefined
    try {
      answering = handler(req, res, params)
    } catch (error) {
      end()
      throw error
    }
    if (answering !== undefined) return answering.finally(end)
    end()
    return undefined
  }
}
