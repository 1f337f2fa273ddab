/* The metrics: request counters, and gauges that are read at each scrape. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ErrorCode } from '../errors.js'
import type { Disposition } from '../ingest/delivery.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { countWaiting } from '../store/event-questions.js'
import { firstKeptBodyAt } from '../store/expire-bodies.js'
import { type Db, ENVIRONMENTS } from '../store/schema.js'
import type { Outage } from '../sync/outages.js'
import type { WebhookStatus } from '../sync/outbound/outbound.js'
import type { SyncStatus } from '../sync/plan.js'
import { type DeliveryGap, readGaps } from './delivery-gaps.js'

export type TimedRoute = 'webhooks' | 'entitlements' | 'entitlement'

/** Seconds. Senders expect an answer within 5 s, and a delivery is given up after 4. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 4, 5]

/** Why a delivery is not authentic. */
const SIGNATURE_CODES = [
  'signature_missing',
  'signature_invalid',
  'timestamp_invalid',
  'timestamp_out_of_tolerance',
] as const satisfies readonly ErrorCode[]

/** Why a delivery is refused before its signature is checked. */
const UNREAD_CODES = [
  'endpoint_not_found',
  'body_too_large',
  'body_incomplete',
  'encoding_not_supported',
  'not_stored',
] as const satisfies readonly ErrorCode[]
export type UnreadCode = (typeof UNREAD_CODES)[number]

const KEY_PROBLEMS = ['missing', 'wrong', 'expired'] as const

/** Help and labels. Every label has few values: endpoints are configured ones, never names taken from a path. */
const METRICS = {
  latchkey_deliveries_total: ['Authentic deliveries, by result.', 'endpoint', 'disposition'],
  latchkey_deliveries_not_stored_total: [
    'Authentic deliveries that could not be stored: their senders got an error.',
    'endpoint',
  ],
  latchkey_signatures_rejected_total: [
    'Deliveries that were not authentic, by the check that failed.',
    'endpoint',
    'code',
  ],
  latchkey_deliveries_refused_total: [
    'Deliveries refused before their signature was checked, by reason: to no endpoint, too large, not whole, compressed, no memory for its body.',
    'code',
  ],
  latchkey_api_keys_refused_total: [
    'Requests without a valid API key, by problem: missing, wrong, expired.',
    'key',
  ],
  latchkey_connections_dropped_total: ['Connections closed at once because there were too many.'],
  latchkey_conflicts_total: ['Deliveries with the id of a stored event, and another body.', 'endpoint'],
  latchkey_header_mismatches_total: [
    'Deliveries whose X-Webhook-Event header names another type than their body.',
    'endpoint',
  ],
  latchkey_sync_calls_total: ['Attempts to change memberships, by result.', 'platform', 'result'],
  latchkey_request_duration_seconds: ['Time from a request to its answer.', 'route'],
  latchkey_bodies_being_read_bytes: ['Memory held by the request bodies that are being received.'],
  latchkey_clock_skew_seconds: [
    'How far ahead of ours the clock of the last delivery out of tolerance was; negative: behind.',
    'endpoint',
  ],
  latchkey_last_delivery_timestamp_seconds: ['When the last new event arrived.', 'endpoint'],
  latchkey_delivery_gap_seconds: ['How long ago the last new event arrived.', 'endpoint'],
  latchkey_delivery_usual_interval_seconds: [
    'The mean time between two new events; the newest weigh most.',
    'endpoint',
  ],
  latchkey_events_waiting: ['Stored events without effect so far.', 'environment', 'disposition'],
  latchkey_oldest_waiting_event_age_seconds: [
    'How long ago the first stored of the events without effect arrived.',
    'environment',
    'disposition',
  ],
  latchkey_oldest_body_age_seconds: ['Age of the first stored event whose exact bytes are kept.'],
  latchkey_last_backup_timestamp_seconds: ['When the newest scheduled backup was begun, since 1970.'],
  latchkey_last_backfill_timestamp_seconds: [
    'When the last backfill over everything ended, since 1970.',
    'environment',
  ],
  latchkey_last_backfill_stored_events: ['Events that it stored.', 'environment'],
  latchkey_last_backfill_differences: ['What it found different, and no event can express.', 'environment'],
  latchkey_backup_failures_total: ['Scheduled backups that failed.'],
  latchkey_database_size_bytes: ['The size of the database.'],
  latchkey_info: ['Always 1: the version is the label.', 'version'],
  latchkey_ready: ['1: deliveries can be stored; 0: they are refused.'],
  latchkey_config_outdated: ['1: the config file is not what runs: it is invalid, or needs a restart.'],
  latchkey_api_key_expiry_timestamp_seconds: [
    'When the key of this name expires, since 1970. Keys that never expire are left out.',
    'name',
  ],
  latchkey_signing_secret_expiry_timestamp_seconds: [
    'When the last secret of this endpoint expires, since 1970. Left out if one never does.',
    'endpoint',
  ],
  latchkey_sync_memberships: [
    'Accounts that should or should not have a role or group, by progress.',
    'environment',
    'target',
    'state',
  ],
  latchkey_sync_stopped: ['1: no call is made to it until somebody fixes a problem.', 'name'],
  latchkey_sync_paused: ['1: nothing is given, taken or sent until an operator resumes it.'],
  latchkey_leads: ['1: this instance follows access; 0: another one does.'],
  latchkey_outbound_messages: [
    'Messages of an outbound webhook that wait, and those given up that the log still has.',
    'webhook',
    'state',
  ],
  latchkey_outbound_oldest_waiting_timestamp_seconds: [
    'When the oldest message that waits was queued.',
    'webhook',
  ],
  latchkey_outbound_last_delivery_timestamp_seconds: ['When a message was last delivered.', 'webhook'],
  latchkey_outbound_last_error_timestamp_seconds: ['When an attempt last failed.', 'webhook'],
  latchkey_platform_unreachable: [
    '1: a platform, or an address of the outbound webhooks, has answered no call for a minute or more.',
    'platform',
  ],
} as const satisfies Readonly<Record<string, readonly [help: string, ...labels: string[]]>>
type MetricName = keyof typeof METRICS

function declared(registry: Registry, name: MetricName) {
  const [help, ...labelNames]: readonly [string, ...string[]] = METRICS[name]
  return { name, help, labelNames, registers: [registry] }
}

export type RequestMetrics = ReturnType<typeof createMetrics>

let ofProcess: Registry | null = null

/** Of the whole process, and so the same for all its daemons: nothing ends the library's watch on a process. */
function processMetrics(): Registry {
  if (ofProcess === null) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}

/**
 * Metrics in a separate registry, which other modules may add to; includes those of the process.
 * @param bytesBeingRead the memory held by bodies being received
 */
export function createMetrics(bytesBeingRead: () => number) {
  const registry = Registry.merge([processMetrics()])
  new Gauge({
    ...declared(registry, 'latchkey_bodies_being_read_bytes'),
    collect() {
      this.set(bytesBeingRead())
    },
  })
  const skew = new Gauge(declared(registry, 'latchkey_clock_skew_seconds'))
  const durations = new Histogram({
    ...declared(registry, 'latchkey_request_duration_seconds'),
    buckets: DURATION_BUCKETS,
  })
  const durationOf = {
    webhooks: durations.labels('webhooks'),
    entitlements: durations.labels('entitlements'),
    entitlement: durations.labels('entitlement'),
  } satisfies Record<TimedRoute, unknown>

  /** How `increase()` sees the first failure: a series that begins with it shows no increase. */
  const zeros = (name: MetricName, ...values: readonly (readonly string[])[]) => {
    const counter = registry.getSingleMetric(name)
    if (counter instanceof Counter) for (const labels of values) counter.labels(...labels).inc(0)
  }

  return {
    registry,
    /** Begins the series of every failure that these endpoints can have, at 0. */
    begin(endpoints: readonly string[]): void {
      for (const name of endpoints) {
        zeros('latchkey_deliveries_not_stored_total', [name])
        zeros('latchkey_conflicts_total', [name])
        zeros('latchkey_header_mismatches_total', [name])
        zeros('latchkey_signatures_rejected_total', ...SIGNATURE_CODES.map((code) => [name, code]))
      }
      zeros('latchkey_deliveries_refused_total', ...UNREAD_CODES.map((code) => [code]))
      zeros('latchkey_api_keys_refused_total', ...KEY_PROBLEMS.map((problem) => [problem]))
      for (const route of Object.keys(durationOf)) durations.zero({ route })
    },
    delivered: counterOf<[endpoint: string, Disposition]>(registry, 'latchkey_deliveries_total'),
    notStored: counterOf<[endpoint: string]>(registry, 'latchkey_deliveries_not_stored_total'),
    rejected: counterOf<[endpoint: string, (typeof SIGNATURE_CODES)[number]]>(
      registry,
      'latchkey_signatures_rejected_total',
    ),
    refused: counterOf<[UnreadCode]>(registry, 'latchkey_deliveries_refused_total'),
    keyRefused: counterOf<[(typeof KEY_PROBLEMS)[number]]>(registry, 'latchkey_api_keys_refused_total'),
    connectionDropped: counterOf<[]>(registry, 'latchkey_connections_dropped_total'),
    conflict: counterOf<[endpoint: string]>(registry, 'latchkey_conflicts_total'),
    headerMismatch: counterOf<[endpoint: string]>(registry, 'latchkey_header_mismatches_total'),
    clockSkew: (endpoint: string, seconds: number) => skew.set({ endpoint }, seconds),
    observeDuration: (route: TimedRoute, seconds: number) => durationOf[route].observe(seconds),
  }
}

/** The returned function counts one more under these values of the labels. */
function counterOf<Values extends readonly string[]>(
  registry: Registry,
  name: MetricName,
): (...values: Values) => void {
  const counter = new Counter(declared(registry, name))
  return (...values) => counter.labels(...values).inc()
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
    /** How far its clock was ahead of ours; negative: behind. */
    skews: valuesOf('latchkey_clock_skew_seconds').map(({ labels, value }) => ({
      endpoint: String(labels.endpoint),
      seconds: value,
    })),
  }
}

/** A value of a gauge, and its labels. */
type Sample = readonly [value: number, labels?: Readonly<Record<string, string>>]

/** @param ms null: it is not known, and not shown */
function inSeconds(ms: number | null, labels: Readonly<Record<string, string>> = {}): readonly Sample[] {
  return ms === null ? [] : [[ms / 1000, labels]]
}

/** Gauges filled by one read per scrape. A gauge without a sample, or whose read fails, is not shown. */
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
  return (name: MetricName, samplesOf: (state: State) => readonly Sample[]) => {
    const facts = declared(registry, name)
    return new Gauge({
      ...facts,
      async collect() {
        this.reset()
        const state = await readOnce()
        const samples = state === null ? [] : samplesOf(state)
        for (const [value, labels = {}] of samples) this.set(labels, value)
        // A gauge without labels shows 0 after a reset.
        if (samples.length === 0 && facts.labelNames.length === 0) this.remove()
      },
    })
  }
}

export interface StoreMetricsDeps {
  readonly registry: Registry
  /** The configured ones, read at every scrape: no other name becomes a label. */
  readonly endpointNames: () => readonly string[]
  readonly db: Db
  readonly readBytes: () => Promise<number>
  /** The last one of each environment that has had one. */
  readonly readBackfills: () => Promise<readonly LastBackfill[]>
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/** A backfill over everything, which has ended. */
export interface LastBackfill {
  readonly environment: Environment
  /** Epoch milliseconds. */
  readonly endedAt: number
  /** In events. */
  readonly stored: number
  readonly differences: number
}

/** Adds the metrics of the store. */
export function addStoreMetrics(deps: StoreMetricsDeps): void {
  const { registry, endpointNames, db, readBytes, readBackfills, clock } = deps
  const ageOf = (at: number): number => Math.max(0, clock() - at)
  const gaugeOfGaps = gaugesFilledBy(registry, () => readGaps(db, clock()))
  const addGapGauge = (name: MetricName, msOf: (gap: DeliveryGap) => number | null) =>
    gaugeOfGaps(name, (gaps) =>
      endpointNames().flatMap((endpoint) => {
        const gap = gaps.get(endpoint)
        return gap === undefined ? [] : inSeconds(msOf(gap), { endpoint })
      }),
    )
  addGapGauge('latchkey_last_delivery_timestamp_seconds', ({ lastAt }) => lastAt)
  addGapGauge('latchkey_delivery_gap_seconds', ({ current }) => current)
  addGapGauge('latchkey_delivery_usual_interval_seconds', ({ usualInterval }) => usualInterval)
  const gaugeOfWaiting = gaugesFilledBy(registry, () => countWaiting(db))
  gaugeOfWaiting('latchkey_events_waiting', (counted) => [
    // Includes zeros: an alarm on a missing series never ends.
    ...ENVIRONMENTS.flatMap((environment) =>
      ['held', 'quarantined'].map((disposition) => [0, { environment, disposition }] as const),
    ),
    ...counted.map(({ count, environment, disposition }) => [count, { environment, disposition }] as const),
  ])
  gaugeOfWaiting('latchkey_oldest_waiting_event_age_seconds', (counted) =>
    counted.flatMap(({ oldestAt, environment, disposition }) =>
      inSeconds(ageOf(oldestAt), { environment, disposition }),
    ),
  )
  gaugesFilledBy(registry, readBytes)('latchkey_database_size_bytes', (bytes) => [[bytes]])
  const gaugeOfBackfills = gaugesFilledBy(registry, readBackfills)
  const addBackfillGauge = (name: MetricName, of: (last: LastBackfill) => number) =>
    gaugeOfBackfills(name, (all) => all.map((last) => [of(last), { environment: last.environment }]))
  addBackfillGauge('latchkey_last_backfill_timestamp_seconds', ({ endedAt }) => endedAt / 1000)
  addBackfillGauge('latchkey_last_backfill_stored_events', ({ stored }) => stored)
  addBackfillGauge('latchkey_last_backfill_differences', ({ differences }) => differences)
  const gaugeOfBody = gaugesFilledBy(registry, () => firstKeptBodyAt(db))
  gaugeOfBody('latchkey_oldest_body_age_seconds', (at) => inSeconds(at && ageOf(at)))
}

export interface DaemonState {
  readonly version: string
  /** Whether deliveries can be stored. */
  readonly isReady: boolean
  /** Whether the config file is not what runs. */
  readonly isConfigOutdated: boolean
  readonly apiKeys: readonly { readonly name: string; readonly expiresAt: number | null }[]
  readonly endpoints: readonly Endpoint[]
}

/** Adds the metrics of the daemon itself. */
export function addDaemonMetrics(registry: Registry, read: () => Promise<DaemonState>): void {
  const gauge = gaugesFilledBy(registry, read)
  gauge('latchkey_info', ({ version }) => [[1, { version }]])
  gauge('latchkey_ready', ({ isReady }) => [[Number(isReady)]])
  gauge('latchkey_config_outdated', ({ isConfigOutdated }) => [[Number(isConfigOutdated)]])
  // A key that was rotated has two ends: what counts is when its users are left without one.
  gauge('latchkey_api_key_expiry_timestamp_seconds', ({ apiKeys }) =>
    [...Map.groupBy(apiKeys, ({ name }) => name)].flatMap(([name, keys]) =>
      inSeconds(lastOf(keys.map(({ expiresAt }) => expiresAt)), { name }),
    ),
  )
  gauge('latchkey_signing_secret_expiry_timestamp_seconds', ({ endpoints }) =>
    endpoints.flatMap(({ name, secrets }) =>
      inSeconds(lastOf(secrets.map(({ notAfter }) => notAfter)), { endpoint: name }),
    ),
  )
}

/** The latest of these instants; null if one of them is never. */
function lastOf(instants: readonly (number | null)[]): number | null {
  return instants.includes(null) ? null : Math.max(...instants.map(Number))
}

export function createBackupMetrics(registry: Registry) {
  let gauge: Gauge | null = null
  return {
    /** When the newest was begun. The series begins with the first one: before that it would show 1970. */
    made(at: number): void {
      gauge ??= new Gauge(declared(registry, 'latchkey_last_backup_timestamp_seconds'))
      gauge.set(at / 1000)
    },
    failed: counterOf<[]>(registry, 'latchkey_backup_failures_total'),
  }
}

/** The current state of sync. */
export interface SyncState extends SyncStatus {
  /** The configured addresses. */
  readonly webhooks: readonly WebhookStatus[]
  /** The current outages. */
  readonly unreachable: readonly Outage[]
  /** Whether this instance makes the calls and sends; if not, another one does, or none runs. */
  readonly leads: boolean
}

/** Adds the metrics of sync; targets are those configured now or earlier. */
export function addSyncMetrics(registry: Registry, status: () => Promise<SyncState>) {
  const gauge = gaugesFilledBy(registry, status)
  gauge('latchkey_sync_memberships', ({ targets }) =>
    targets.flatMap(({ environment, target, memberships }) =>
      Object.entries(memberships).map(([state, count]) => [count, { environment, target, state }] as const),
    ),
  )
  gauge('latchkey_sync_stopped', ({ platforms, targets }) => [
    ...platforms.map(({ platform, state }) => [Number(state === 'stopped'), { name: platform }] as const),
    ...targets.map(({ target, state }) => [Number(state === 'stopped'), { name: target }] as const),
  ])
  gauge('latchkey_sync_paused', ({ paused }) => [[Number(paused)]])
  gauge('latchkey_leads', (state) => [[Number(state.leads)]])
  gauge('latchkey_outbound_messages', ({ webhooks }) =>
    webhooks.flatMap(({ id: webhook, waiting, failed }) => [
      [waiting, { webhook, state: 'pending' }],
      [failed, { webhook, state: 'failed' }],
    ]),
  )
  const addInstant = (name: MetricName, instantOf: (webhook: WebhookStatus) => number | null | undefined) =>
    gauge(name, ({ webhooks }) =>
      webhooks.flatMap((one) => inSeconds(instantOf(one) ?? null, { webhook: one.id })),
    )
  addInstant('latchkey_outbound_oldest_waiting_timestamp_seconds', ({ oldestWaitingAt }) => oldestWaitingAt)
  addInstant('latchkey_outbound_last_delivery_timestamp_seconds', ({ lastDeliveredAt }) => lastDeliveredAt)
  addInstant('latchkey_outbound_last_error_timestamp_seconds', ({ lastError }) => lastError?.at)
  gauge('latchkey_platform_unreachable', ({ platforms, webhooks, unreachable }) =>
    [...platforms.map(({ platform }) => platform), ...webhooks.map(({ id }) => `webhook:${id}` as const)].map(
      (platform) => [Number(unreachable.some((one) => one.platform === platform)), { platform }],
    ),
  )
  /** `driven`: one attempt to change a membership. */
  return { driven: counterOf<[platform: string, result: string]>(registry, 'latchkey_sync_calls_total') }
}
