import type { Logger } from 'pino'
import type { DeliveryGaps } from './delivery-watch.js'

export interface WarnOfGapsDeps {
  readonly readGaps: () => Promise<DeliveryGaps>
  /** Asked each time, since a reload may change them. */
  readonly endpointNames: () => readonly string[]
  readonly log: Logger
}

/** Says once that an endpoint has fallen silent, and once that deliveries come again. */
export function createWarnOfGaps({ readGaps, endpointNames, log }: WarnOfGapsDeps): () => Promise<void> {
  /** When the last delivery before the silence came, by endpoint. */
  const silentSince = new Map<string, number>()

  return async () => {
    const gaps = await readGaps()
    for (const endpoint of endpointNames()) {
      const gap = gaps.get(endpoint)
      const since = silentSince.get(endpoint)
      if (gap === undefined || gap.isUnusual === (since !== undefined)) continue
      if (since === undefined) {
        silentSince.set(endpoint, gap.lastAt)
        log.warn(
          {
            endpoint,
            lastDelivery: new Date(gap.lastAt).toISOString(),
            silentSeconds: seconds(gap.current),
            usualIntervalSeconds: gap.usualInterval === null ? null : seconds(gap.usualInterval),
          },
          'no delivery for unusually long: look at the sender and at what stands between',
        )
      } else {
        silentSince.delete(endpoint)
        log.info({ endpoint, silentSeconds: seconds(gap.lastAt - since) }, 'deliveries come again')
      }
    }
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 1000)
}
