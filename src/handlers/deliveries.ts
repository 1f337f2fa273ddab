/* How deliveries go, by the minute. */

import { z } from 'zod'
import type { DeliveryGaps } from '../operations/delivery-gaps.js'
import type { Pulse } from '../operations/pulse.js'
import { counts, environment, instant } from './answers.js'
import { ADMIN, type MountDeps, type Route, route } from './route.js'

export interface DeliveryDeps extends MountDeps {
  readonly pulse: Pulse
  readonly gaps: () => Promise<DeliveryGaps>
}

const minute = z.object({
  at: instant,
  ...counts('applied', 'ignored', 'held', 'quarantined', 'duplicate', 'refused', 'notStored'),
})

export const deliveriesAnswer = z.object({
  /** The last hour, or since this daemon started; each counts its own. */
  minutes: z.array(minute),
  /** How long their senders waited; null: none was acknowledged. */
  acknowledged: z
    .object({ count: z.int(), p50Ms: z.number(), p95Ms: z.number(), p99Ms: z.number() })
    .nullable(),
  endpoints: z.array(
    z.object({
      name: z.string(),
      environment,
      /** Null: nothing has come so far. */
      lastEventAt: instant.nullable(),
      /** Null while too little is known. */
      usualIntervalMs: z.int().nullable(),
      unusualAfterMs: z.int().nullable(),
      isUnusual: z.boolean(),
    }),
  ),
})

export const deliveryRoutes: readonly Route<DeliveryDeps>[] = [
  route('GET /deliveries', {
    operationId: 'getDeliveries',
    summary:
      'Deliveries a minute in the last hour, how fast they were acknowledged, and the silence of each endpoint.',
    ...ADMIN,
    answer: deliveriesAnswer,
    async handle({ environments }, { pulse, gaps, endpoints }: DeliveryDeps) {
      const shown = endpoints().filter((one) => environments.includes(one.environment))
      const known = await gaps()
      return {
        ...pulse.read(shown.map(({ name }) => name)),
        endpoints: shown.map(({ name, environment }) => {
          const gap = known.get(name)
          return {
            name,
            environment,
            lastEventAt: gap?.lastAt ?? null,
            usualIntervalMs: gap?.usualInterval ?? null,
            unusualAfterMs: gap?.unusualAfter ?? null,
            isUnusual: gap?.isUnusual ?? false,
          }
        }),
      }
    },
  }),
]
