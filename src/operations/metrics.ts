import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ErrorCode } from '../errors.js'
import type { Disposition } from '../ingest/delivery.js'
import type { Environment } from '../provider/event.js'
import type { Outage } from '../sync/outages.js'
import type { OutboundStatus } from '../sync/outbound/outbound.js'
import type { SyncStatus } from '../sync/sync.js'
import type { DeliveryGap } from './delivery-gaps.js'

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
export function createMetrics(bytesBeingRead: () => number): RequestMetrics {
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

export interface StoreMetricsDeps {
  readonly registry: Registry
  /** The configured ones, asked at every scrape: no other name becomes a label. */
  readonly endpointNames: () => readonly string[]
  /** By the name of the endpoint. */
  readonly readGaps: () => Promise<ReadonlyMap<string, DeliveryGap>>
  readonly countWaiting: () => Promise<readonly WaitingSeries[]>
  /** Milliseconds; null: none is kept. */
  readonly readFirstBodyAge: () => Promise<number | null>
}

interface WaitingSeries {
  readonly environment: Environment
  readonly disposition: 'held' | 'quarantined'
  readonly count: number
}

const ENVIRONMENTS = ['live', 'sandbox'] as const
const DISPOSITIONS = ['held', 'quarantined'] as const

/**
 * Adds what only the store can tell, read when it is scraped. While the store can't be read these series are
 * missing, and the others are still told.
 */
export function addStoreMetrics(deps: StoreMetricsDeps): void {
  const { registry, endpointNames, readGaps, countWaiting, readFirstBodyAge } = deps
  const registers = [registry]

  const addGapGauge = (name: string, help: string, tell: (gap: DeliveryGap) => number | null): void => {
    new Gauge({
      name,
      help,
      labelNames: ['endpoint'],
      registers,
      async collect() {
        this.reset()
        const gaps = await readGaps().catch(() => null)
        for (const endpoint of endpointNames()) {
          const gap = gaps?.get(endpoint)
          const value = gap === undefined ? null : tell(gap)
          if (value !== null) this.set({ endpoint }, value / 1000)
        }
      },
    })
  }

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
  new Gauge({
    name: 'latchkey_events_waiting',
    help: 'Stored events that count nowhere yet.',
    labelNames: ['environment', 'disposition'],
    registers,
    async collect() {
      this.reset()
      const counted = await countWaiting().catch(() => null)
      if (counted === null) return
      // Zero is told too: an alarm on a series that is not there never ends.
      for (const environment of ENVIRONMENTS) {
        for (const disposition of DISPOSITIONS) this.set({ environment, disposition }, 0)
      }
      for (const { environment, disposition, count } of counted) this.set({ environment, disposition }, count)
    },
  })
  new Gauge({
    name: 'latchkey_oldest_body_age_seconds',
    help: 'How long ago the event arrived that was stored first of those whose exact bytes are kept.',
    registers,
    async collect() {
      this.reset()
      const age = await readFirstBodyAge().catch(() => null)
      // A gauge without labels is told as 0 once it is reset.
      if (age === null) this.remove()
      else this.set(age / 1000)
    },
  })
}

/** All that follows access, as it is now. */
export interface FollowingState {
  readonly sync: SyncStatus
  readonly outbound: OutboundStatus | null
  readonly outages: readonly Outage[]
}

export interface SyncMetricsDeps {
  readonly registry: Registry
  /** Asked at every scrape. While it can't be told, these series are missing, and the others are still told. */
  readonly status: () => Promise<FollowingState>
}

/** What is counted as it happens, beside what the store tells. Targets are configured ones, or were. */
export interface SyncMetrics {
  /** One membership was worked on. */
  driven(platform: string, result: string): void
}

export function addSyncMetrics({ registry, status }: SyncMetricsDeps): SyncMetrics {
  const registers = [registry]
  let reading: Promise<FollowingState | null> | null = null
  /** One read for all of a scrape. */
  const read = () => {
    reading ??= status()
      .catch(() => null)
      .finally(() => {
        reading = null
      })
    return reading
  }

  new Gauge({
    name: 'latchkey_sync_memberships',
    help: 'Accounts that should be, or should not be, in a role or group, by how far that is.',
    labelNames: ['environment', 'target', 'state'],
    registers,
    async collect() {
      this.reset()
      for (const { environment, target, counts } of (await read())?.sync.targets ?? []) {
        for (const [state, count] of Object.entries(counts)) this.set({ environment, target, state }, count)
      }
    },
  })
  new Gauge({
    name: 'latchkey_sync_stopped',
    help: '1: no call is made to a platform or target until somebody has done something.',
    labelNames: ['name'],
    registers,
    async collect() {
      this.reset()
      const told = (await read())?.sync
      if (told === undefined) return
      for (const { platform, state } of told.platforms)
        this.set({ name: platform }, Number(state.kind === 'stopped'))
      for (const { target, state } of told.targets)
        this.set({ name: target }, Number(state.kind === 'stopped'))
    },
  })
  new Gauge({
    name: 'latchkey_sync_paused',
    help: '1: nothing is given, taken or sent until an operator resumes it.',
    registers,
    async collect() {
      this.reset()
      const told = await read()
      if (told === null) this.remove()
      else this.set(Number(told.sync.paused))
    },
  })
  new Gauge({
    name: 'latchkey_outbound_messages',
    help: 'Changes of access that the outbound webhook has not told yet.',
    labelNames: ['state'],
    registers,
    async collect() {
      this.reset()
      const told = (await read())?.outbound
      if (told === null || told === undefined) return
      const count = (isParked: boolean) =>
        told.messages
          .filter(({ parked }) => (parked !== null) === isParked)
          .reduce((sum, { count }) => sum + count, 0)
      this.set({ state: 'pending' }, count(false))
      this.set({ state: 'parked' }, count(true))
    },
  })
  new Gauge({
    name: 'latchkey_platform_unreachable',
    help: '1: a platform, or the receiver of the outbound webhook, has answered no call for a minute or more.',
    labelNames: ['platform'],
    registers,
    async collect() {
      this.reset()
      const told = await read()
      if (told === null) return
      const called = [
        ...told.sync.platforms.map(({ platform }) => platform),
        ...(told.outbound === null ? [] : ['webhook' as const]),
      ]
      for (const platform of called) {
        this.set({ platform }, Number(told.outages.some(({ name }) => name === platform)))
      }
    },
  })
  const calls = new Counter({
    name: 'latchkey_sync_calls_total',
    help: 'Memberships that were worked on, by what came of it.',
    labelNames: ['platform', 'result'],
    registers,
  })
  return { driven: (platform, result) => calls.inc({ platform, result }) }
}
