import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ErrorCode } from '../errors.js'
import type { Disposition } from '../ingest/delivery.js'
import { bytesBeingRead } from './read-body.js'

const ROUTES = ['webhooks', 'entitlements', 'entitlement'] as const
export type TimedRoute = (typeof ROUTES)[number]

/** Seconds. Senders ask for an answer within 5 s, and a delivery is given up after 4. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 4, 5]

/**
 * What is counted about requests. Every label has few values: endpoints are configured ones, never
 * names taken from a path.
 */
export interface RequestMetrics {
  readonly registry: Registry
  delivered(endpoint: string, disposition: Disposition): void
  rejected(endpoint: string, code: ErrorCode): void
  /** A delivery was refused before its signature was checked. */
  refused(code: ErrorCode): void
  /** A request to the API had no key, or none that is right. */
  keyRefused(key: 'missing' | 'wrong'): void
  /** A connection was closed at once, since there were too many. */
  connectionDropped(): void
  /** Seconds that a rejected delivery's clock was ahead of ours; negative: behind. */
  clockSkew(endpoint: string, seconds: number): void
  /** Another body came under the id of a stored event. */
  conflict(endpoint: string): void
  /** The unsigned X-Webhook-Event header named another type than the body. */
  headerMismatch(endpoint: string): void
  observeDuration(route: TimedRoute, seconds: number): void
}

/** Metrics in a registry of their own, which others may add to; the process's are in it. */
export function createMetrics(): RequestMetrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const deliveries = new Counter({
    name: 'latchkey_deliveries_total',
    help: 'Authentic deliveries, by what became of them.',
    labelNames: ['endpoint', 'disposition'],
    registers,
  })
  const rejections = new Counter({
    name: 'latchkey_signatures_rejected_total',
    help: 'Deliveries that were not authentic, by the check that failed.',
    labelNames: ['endpoint', 'code'],
    registers,
  })
  const refusals = new Counter({
    name: 'latchkey_deliveries_refused_total',
    help: 'Deliveries refused before their signature was checked, by why: to no endpoint, too large, not whole, compressed, no memory for its body.',
    labelNames: ['code'],
    registers,
  })
  const refusedKeys = new Counter({
    name: 'latchkey_api_keys_refused_total',
    help: 'Requests to the API without a right key, by what was wrong with it: missing, wrong.',
    labelNames: ['key'],
    registers,
  })
  const droppedConnections = new Counter({
    name: 'latchkey_connections_dropped_total',
    help: 'Connections closed at once because there were too many.',
    registers,
  })
  new Gauge({
    name: 'latchkey_bodies_being_read_bytes',
    help: 'What the bodies of requests that are being received hold in memory.',
    registers,
    collect() {
      this.set(bytesBeingRead())
    },
  })
  const skew = new Gauge({
    name: 'latchkey_clock_skew_seconds',
    help: 'How far ahead of ours the clock of the last delivery out of tolerance was; negative: behind.',
    labelNames: ['endpoint'],
    registers,
  })
  const conflicts = new Counter({
    name: 'latchkey_conflicts_total',
    help: 'Deliveries with the id of a stored event, and another body.',
    labelNames: ['endpoint'],
    registers,
  })
  const mismatches = new Counter({
    name: 'latchkey_header_mismatches_total',
    help: 'Deliveries whose X-Webhook-Event header names another type than their body.',
    labelNames: ['endpoint'],
    registers,
  })
  const durations = new Histogram({
    name: 'latchkey_request_duration_seconds',
    help: 'Time from a request to its answer.',
    labelNames: ['route'],
    buckets: DURATION_BUCKETS,
    registers,
  })

  const durationOf = {
    webhooks: durations.labels('webhooks'),
    entitlements: durations.labels('entitlements'),
    entitlement: durations.labels('entitlement'),
  } satisfies Record<TimedRoute, unknown>

  return {
    registry,
    delivered: (endpoint, disposition) => deliveries.inc({ endpoint, disposition }),
    rejected: (endpoint, code) => rejections.inc({ endpoint, code }),
    refused: (code) => refusals.inc({ code }),
    keyRefused: (key) => refusedKeys.inc({ key }),
    connectionDropped: () => droppedConnections.inc(),
    clockSkew: (endpoint, seconds) => skew.set({ endpoint }, seconds),
    conflict: (endpoint) => conflicts.inc({ endpoint }),
    headerMismatch: (endpoint) => mismatches.inc({ endpoint }),
    observeDuration: (route, seconds) => durationOf[route].observe(seconds),
  }
}

/** What the running daemon has refused since its start, and how far off the clocks of senders were. */
export async function readRefusals(registry: Registry) {
  const metrics = await registry.getMetricsAsJSON()
  const valuesOf = (name: string) => metrics.find((metric) => metric.name === name)?.values ?? []
  return {
    rejected: valuesOf('latchkey_signatures_rejected_total').map(({ labels, value }) => ({
      endpoint: String(labels.endpoint),
      code: String(labels.code),
      count: value,
    })),
    skews: valuesOf('latchkey_clock_skew_seconds').map(({ labels, value }) => ({
      endpoint: String(labels.endpoint),
      seconds: value,
    })),
  }
}
