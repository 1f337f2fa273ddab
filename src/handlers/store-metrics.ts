import { Gauge, type Registry } from 'prom-client'
import type { DeliveryGap } from '../operations/delivery-gaps.js'
import type { Environment } from '../provider/event.js'

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
