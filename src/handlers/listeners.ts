import type { Logger } from 'pino'
import type { Delivery, Receipt } from '../ingest/delivery.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import type { AccessDeps } from './access-question.js'
import type { ApiKey } from './api-key.js'
import { createApp } from './app.js'
import { createAuthenticate } from './authenticate.js'
import { createClientAddress } from './client-address.js'
import { createFailureLimit } from './failure-limit.js'
import { getEntitlement } from './get-entitlement.js'
import { getEntitlements } from './get-entitlements.js'
import { getMetrics } from './get-metrics.js'
import { healthz } from './healthz.js'
import type { RequestMetrics } from './metrics.js'
import { routeNotFound } from './not-found.js'
import type { Route } from './raw-handler.js'
import { type Readiness, readyz } from './readyz.js'
import { receiveWebhook } from './receive-webhook.js'
import { createRoute } from './route.js'
import { createServer, type RunningServer } from './server.js'
import { timed } from './timed.js'

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
  /** Asked at every request, since a reload may change them. */
  readonly endpointNamed: (name: string) => Endpoint | undefined
  readonly environments: () => readonly Environment[]
  readonly apiKeys: () => readonly ApiKey[]
  readonly ingest: (delivery: Delivery) => Promise<Receipt>
  readonly readAccess: AccessDeps['readAccess']
  readonly isWriterAlive: () => boolean
  readonly readiness: () => Promise<Readiness>
  readonly clock: () => number
  readonly metrics: RequestMetrics
  readonly log: Logger
}

export interface Listeners {
  readonly url: string
  /** The main listener's where they have none of their own. */
  readonly webhooksUrl: string
  readonly metricsUrl: string
  stop(): Promise<void>
}

/** Opens every listener that is configured. A listener of its own serves nothing else, and alone serves that. */
export async function startListeners(deps: ListenersDeps): Promise<Listeners> {
  const { addresses, log } = deps
  const routes = createRoutes(deps)
  const authenticate = createAuthenticate(deps)
  const hot = addresses.webhooks === null ? [routes.webhooks, ...routes.entitlements] : routes.entitlements
  const app = createApp({
    routes: hot,
    healthz: healthz(deps),
    readyz: readyz(deps),
    getMetrics: getMetrics({ registry: deps.metrics.registry, authenticate }),
    log,
  })
  const openMetrics = getMetrics({ registry: deps.metrics.registry, authenticate: null })

  const running: RunningServer[] = []
  const listen = async (at: Address, own: readonly Route[], fallback = routeNotFound): Promise<string> => {
    const server = await createServer({ routes: own, fallback }).listen(at)
    running.push(server)
    return server.url
  }
  const stop = async (): Promise<void> => {
    await Promise.all(running.map((server) => server.stop()))
  }
  try {
    const url = await listen(addresses, hot, app)
    return {
      url,
      webhooksUrl: addresses.webhooks ? await listen(addresses.webhooks, [routes.webhooks]) : url,
      metricsUrl: addresses.metrics
        ? await listen(addresses.metrics, [createRoute('/metrics', openMetrics, log)])
        : url,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

function createRoutes(deps: ListenersDeps): { webhooks: Route; entitlements: Route[] } {
  const { metrics, log } = deps
  const access = { ...deps, authenticate: createAuthenticate(deps) }
  const webhooks = receiveWebhook({
    ...deps,
    failures: createFailureLimit(),
    clientAddress: createClientAddress(deps.addresses.trustProxy),
  })
  const timing = (route: Parameters<RequestMetrics['observeDuration']>[0]) => (seconds: number) =>
    metrics.observeDuration(route, seconds)
  return {
    webhooks: createRoute('/webhooks/:endpoint', timed(webhooks, timing('webhooks')), log),
    entitlements: [
      createRoute('/entitlements/:customerId', timed(getEntitlements(access), timing('entitlements')), log),
      createRoute(
        '/entitlements/:customerId/:productId',
        timed(getEntitlement(access), timing('entitlement')),
        log,
      ),
    ],
  }
}
