import type { Registry } from 'prom-client'
import type { Authenticate } from './authenticate.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { send } from './send.js'

export interface GetMetricsDeps {
  readonly registry: Registry
  /** Null on a listener of its own: whoever can reach it may read. */
  readonly authenticate: Authenticate | null
}

/** GET /metrics, in the text form that Prometheus reads. */
export function getMetrics({ registry, authenticate }: GetMetricsDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    authenticate?.(req, 'metrics')
    const headers = { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }
    send(res, 200, headers, await registry.metrics())
  }
}
