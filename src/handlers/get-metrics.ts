import type { Registry } from 'prom-client'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import type { Authenticate } from './authenticate.js'
import { queryOf, shownEnvironments } from './query.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { send } from './send.js'

export interface GetMetricsDeps {
  readonly registry: Registry
  /** Null on a listener of its own: whoever can reach it may read. */
  readonly authenticate: Authenticate | null
  readonly endpointNamed: (name: string) => Endpoint | undefined
}

/**
 * GET /metrics, in the text form that Prometheus reads. A key of one environment, and `?environment=`, get the series
 * of that one, and those of the process. What is counted over both environments together is left out.
 */
export function getMetrics(deps: GetMetricsDeps): RawHandler {
  const { registry, authenticate, endpointNamed } = deps
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const key = authenticate?.(req, 'metrics')
    // Whatever else a scraper adds is ignored.
    const shown = key && shownEnvironments(new URLSearchParams(queryOf(req)), [], key)
    const text = await registry.metrics()
    const headers = { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }
    const isAll = shown === undefined || new Set(shown).size > 1
    send(res, 200, headers, isAll ? text : seriesOf(text, shown, endpointNamed))
  }
}

/** No value of a label can look like this: quotes in one are escaped. */
const BELONGS_TO = /[{,](environment|endpoint)="([^"]*)"/

function seriesOf(
  text: string,
  shown: readonly Environment[],
  endpointNamed: GetMetricsDeps['endpointNamed'],
): string {
  const isShown = (line: string): boolean => {
    if (!line.startsWith('latchkey_')) return true
    const [, label, value = ''] = BELONGS_TO.exec(line) ?? []
    if (label === undefined) return false
    const environment = label === 'endpoint' ? endpointNamed(value)?.environment : value
    return shown.some((one) => one === environment)
  }
  return text.split('\n').filter(isShown).join('\n')
}
