/* The metrics: request counters, and gauges that are read at each scrape. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ErrorCode } from '../errors.js'
import type { Disposition } from '../ingest/delivery.js'
import type { Environment } from '../provider/event.js'
import type { Outage } from '../sync/outages.js'
import type { OutboundStatus } from '../sync/outbound/outbound.js'
import type { SyncStatus } from '../sync/plan.js'
import type { DeliveryGap } from './delivery-gaps.js'

export type TimedRoute = 'webhooks' | 'entitlements' | 'entitlement'

/** Seconds. Senders expect an answer within 5 s, and a delivery is given up after 4. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 4, 5]

export type RequestMetrics = ReturnType<typeof createMetrics>

/**
 * Metrics in a separate registry, which other modules may add to; includes those of the process. Every label has few
 * values: endpoints are configured ones, never names taken from a path.
 * @param bytesBeingRead the memory held by bodies being received
 */
export function createMetrics(bytesBeingRead: () => number) {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter<Label>({ name, help, labelNames, registers })

  const deliveries = counter(
    'latchkey_deliveries_total',
    'Authentic deliveries, by result.',
    'endpoint',
    'disposition',
  )
  const rejections = counter(
    'latchkey_signatures_rejected_total',
    'Deliveries that were not authentic, by the check that failed.',
    'endpoint',
    'code',
  )
  const refusals = counter(
    'latchkey_deliveries_refused_total',
    'Deliveries refused before their signature was checked, by reason: to no endpoint, too large, not whole, compressed, no memory for its body.',
    'code',
  )
  const refusedKeys = counter(
    'latchkey_api_keys_refused_total',
    'Requests to the API without a valid key, by problem: missing, wrong.',
    'key',
  )
  const droppedConnections = counter(
    'latchkey_connections_dropped_total',
    'Connections closed at once because there were too many.',
  )
  new Gauge({
    name: 'latchkey_bodies_being_read_bytes',
    help: 'Memory held by the request bodies that are being received.',
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
  const conflicts = counter(
    'latchkey_conflicts_total',
    'Deliveries with the id of a stored event, and another body.',
    'endpoint',
  )
  const mismatches = counter(
    'latchkey_header_mismatches_total',
    'Deliveries whose X-Webhook-Event header names another type than their body.',
    'endpoint',
  )
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
    delivered: (endpoint: string, disposition: Disposition) => deliveries.inc({ endpoint, disposition }),
    rejected: (endpoint: string, code: ErrorCode) => rejections.inc({ endpoint, code }),
    /** A delivery was refused before its signature was checked. */
    refused: (code: ErrorCode) => refusals.inc({ code }),
    /** A request to the API had no key, or no valid one. */
    keyRefused: (key: 'missing' | 'wrong') => refusedKeys.inc({ key }),
    /** A connection was closed at once, since there were too many. */
    connectionDropped: () => droppedConnections.inc(),
    /** Seconds that a rejected delivery's clock was ahead of ours; negative: behind. */
    clockSkew: (endpoint: string, seconds: number) => skew.set({ endpoint }, seconds),
    /** Another body came under the id of a stored event. */
    conflict: (endpoint: string) => conflicts.inc({ endpoint }),
    /** The unsigned X-Webhook-Event header named another type than the body. */
    headerMismatch: (endpoint: string) => mismatches.inc({ endpoint }),
    observeDuration: (route: TimedRoute, seconds: number) => durationOf[route].observe(seconds),
  }
}

/** What the running daemon has refused since its start, and the last clock difference of a sender. */
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

/** Gauges filled by one read per scrape. If the read fails, only they are missing from the answer. */
function gaugesFilledBy<State>(registry: Registry, read: () => Promise<State>) {
  let reading: Promise<State | null> | null = null
  const readOnce = () => {
    reading ??= read()
      .catch(() => null)
      .finally(() => {
        reading = null
      })
    return reading
  }
  return <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    fill: (gauge: Gauge<Label>, state: State) => void,
  ) =>
    new Gauge<Label>({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        this.reset()
        const state = await readOnce()
        if (state !== null) fill(this, state)
        // A gauge without labels shows 0 after a reset.
        else if (labelNames.length === 0) this.remove()
      },
    })
}

export interface StoreMetricsDeps {
  readonly registry: Registry
  /** The configured ones, read at every scrape: no other name becomes a label. */
  readonly endpointNames: () => readonly string[]
  /** By endpoint name. */
  readonly readGaps: () => Promise<ReadonlyMap<string, DeliveryGap>>
  readonly countWaiting: () => Promise<
    readonly {
      readonly environment: Environment
      readonly disposition: 'held' | 'quarantined'
      readonly count: number
    }[]
  >
  /** Milliseconds; null: none is kept. */
  readonly readFirstBodyAge: () => Promise<number | null>
}

/** Adds the metrics of the store. */
export function addStoreMetrics(deps: StoreMetricsDeps): void {
  const { registry, endpointNames, readGaps, countWaiting, readFirstBodyAge } = deps
  const gaugeOfGaps = gaugesFilledBy(registry, readGaps)
  const addGapGauge = (name: string, help: string, secondsOf: (gap: DeliveryGap) => number | null) =>
    gaugeOfGaps(name, help, ['endpoint'], (gauge, gaps) => {
      for (const endpoint of endpointNames()) {
        const gap = gaps.get(endpoint)
        const value = gap === undefined ? null : secondsOf(gap)
        if (value !== null) gauge.set({ endpoint }, value / 1000)
      }
    })
  addGapGauge(
    'latchkey_last_delivery_timestamp_seconds',
    'When the last new event arrived.',
    ({ lastAt }) => lastAt,
  )
  addGapGauge(
    'latchkey_delivery_gap_seconds',
    'How long ago the last new event arrived.',
    ({ current }) => current,
  )
  addGapGauge(
    'latchkey_delivery_usual_interval_seconds',
    'The mean time between two new events; the newest weigh most.',
    ({ usualInterval }) => usualInterval,
  )
  gaugesFilledBy(registry, countWaiting)(
    'latchkey_events_waiting',
    'Stored events without effect so far.',
    ['environment', 'disposition'],
    (gauge, counted) => {
      // Includes zeros: an alarm on a missing series never ends.
      for (const environment of ['live', 'sandbox']) {
        for (const disposition of ['held', 'quarantined']) gauge.set({ environment, disposition }, 0)
      }
      for (const { environment, disposition, count } of counted)
        gauge.set({ environment, disposition }, count)
    },
  )
  gaugesFilledBy(registry, readFirstBodyAge)(
    'latchkey_oldest_body_age_seconds',
    'Age of the first stored event whose exact bytes are kept.',
    [],
    (gauge, age) => (age === null ? gauge.remove() : gauge.set(age / 1000)),
  )
}

/** The current state of sync. */
export interface SyncState extends SyncStatus {
  /** Null: no outbound webhook is configured. */
  readonly webhook: OutboundStatus | null
  /** The current outages. */
  readonly unreachable: readonly Outage[]
}

/** Adds the metrics of sync; targets are those configured now or earlier. */
export function addSyncMetrics(registry: Registry, status: () => Promise<SyncState>) {
  const gauge = gaugesFilledBy(registry, status)
  gauge(
    'latchkey_sync_memberships',
    'Accounts that should or should not have a role or group, by progress.',
    ['environment', 'target', 'state'],
    (gauge, { targets }) => {
      for (const { environment, target, memberships } of targets)
        for (const [state, count] of Object.entries(memberships))
          gauge.set({ environment, target, state }, count)
    },
  )
  gauge(
    'latchkey_sync_stopped',
    '1: no call is made to a platform or target until somebody fixes a problem.',
    ['name'],
    (stopped, { platforms, targets }) => {
      for (const { platform: name, state } of platforms) stopped.set({ name }, Number(state === 'stopped'))
      for (const { target: name, state } of targets) stopped.set({ name }, Number(state === 'stopped'))
    },
  )
  gauge(
    'latchkey_sync_paused',
    '1: nothing is given, taken or sent until an operator resumes it.',
    [],
    (gauge, { paused }) => gauge.set(Number(paused)),
  )
  gauge(
    'latchkey_outbound_messages',
    'Changes of access that the outbound webhook has not sent yet.',
    ['state'],
    (messages, { webhook }) => {
      for (const state of webhook === null ? [] : (['pending', 'parked'] as const)) {
        const own = webhook?.messages.filter((one) => one.state === state) ?? []
        messages.set(
          { state },
          own.reduce((sum, { count }) => sum + count, 0),
        )
      }
    },
  )
  gauge(
    'latchkey_platform_unreachable',
    '1: a platform, or the receiver of the outbound webhook, has answered no call for a minute or more.',
    ['platform'],
    (gauge, { platforms, webhook, unreachable }) => {
      const called = [
        ...platforms.map(({ platform }) => platform),
        ...(webhook === null ? [] : ['webhook' as const]),
      ]
      for (const platform of called)
        gauge.set({ platform }, Number(unreachable.some((one) => one.platform === platform)))
    },
  )
  const calls = new Counter({
    name: 'latchkey_sync_calls_total',
    help: 'Attempts to change memberships, by result.',
    labelNames: ['platform', 'result'],
    registers: [registry],
  })
  return {
    /** One attempt to change a membership. */
    driven: (platform: string, result: string) => calls.inc({ platform, result }),
  }
}
