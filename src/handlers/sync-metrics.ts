import { Counter, Gauge, type Registry } from 'prom-client'
import type { SyncState } from './sync-json.js'

export interface SyncMetricsDeps {
  readonly registry: Registry
  /** Asked at every scrape. While it can't be told, these series are missing, and the others are still told. */
  readonly status: () => Promise<SyncState>
}

/** What is counted as it happens, beside what the store tells. Targets are configured ones, or were. */
export interface SyncMetrics {
  /** One membership was worked on. */
  driven(platform: string, result: string): void
}

export function addSyncMetrics({ registry, status }: SyncMetricsDeps): SyncMetrics {
  const registers = [registry]
  let reading: Promise<SyncState | null> | null = null
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
