import { type ReadRecord, report, type Stored } from '../../src/backfill/report.js'
import type { Difference, ReportedEvent } from '../../src/backfill/reporter.js'
import { derive } from '../../src/entitlements/derive.js'
import { unpackHistory } from '../../src/entitlements/history.js'
import type { Policy } from '../../src/entitlements/policy.js'
import type { NormalizedEvent } from '../../src/provider/event.js'
import type { JsonObject } from '../../src/provider/json.js'
import { minute } from '../entitlements/events.js'
import { EXAMPLE_POLICY } from '../entitlements/policies.js'

/** The instant as the API writes it. */
export const iso = (at: number): string => new Date(at).toISOString()
export const isoMinute = (count: number): string => iso(minute(count))

/** A one-time payment `pay_1` of `cus_1` for `pro_a` with these statuses, at these minutes of the example. */
export function paymentRecord(
  statuses: readonly (readonly [string, number])[],
  told: JsonObject = {},
): JsonObject {
  const last = statuses.at(-1) ?? ['PENDING', 0]
  return {
    ...{
      id: 'pay_1',
      organizationId: 'org_1',
      customerId: 'cus_1',
      productId: 'pro_a',
      subscriptionId: null,
    },
    ...{ status: last[0], declineCode: null, declineCategory: null, asset: null, refundedAt: null },
    ...{
      paymentReceivedAt: null,
      paymentSettledAt: null,
      createdAt: isoMinute(0),
      updatedAt: isoMinute(last[1]),
    },
    statusTimeline: statuses.map(([status, at]) => ({ status, at: isoMinute(at) })),
    ...told,
  }
}

/** `sub_1` of `cus_1` on `pro_a` in its first cycle of 30 days, unless the fields say otherwise. */
export function subscriptionRecord(told: JsonObject = {}): JsonObject {
  return {
    ...{ id: 'sub_1', organizationId: 'org_1', customerId: 'cus_1', productId: 'pro_a', status: 'ACTIVE' },
    ...{ currentCycle: 1, totalCycles: null, trialEndAt: null, cancelAtPeriodEnd: false },
    ...{ currentCycleDueAt: isoMinute(30 * DAY), createdAt: isoMinute(0), updatedAt: isoMinute(2), ...told },
  }
}

/** In minutes. */
export const DAY = 24 * 60

/** What a store that holds these events would load for any record. */
export function storedOf(events: readonly NormalizedEvent[], policy: Policy = EXAMPLE_POLICY): Stored {
  const arrived = events.map((event, i) => ({ seq: i + 1, event }))
  const { links, sources } = derive(arrived, policy)
  const histories = [...sources].map(([name, { history }]) => [name, unpackHistory(history) ?? []] as const)
  return { links, histories: new Map(histories) }
}

export interface ReadingOf {
  /** When the reading began. */
  readonly at: number
  readonly policy?: Policy
  /** How many of the events were stored by then; all of them unless this says otherwise. */
  readonly storedBefore?: number
}

/** Reports records one after the other, each seeing what was reported before. */
export function backfill(
  records: readonly ReadRecord[],
  stored: readonly NormalizedEvent[],
  { at, policy = EXAMPLE_POLICY, storedBefore = stored.length }: ReadingOf,
): { events: readonly ReportedEvent[]; differences: readonly Difference[] } {
  const reading = { environment: 'live', at, newestSeq: storedBefore, by: 'backfill', policy } as const
  const events: ReportedEvent[] = []
  const differences: Difference[] = []
  for (const record of records) {
    const all = [...stored, ...events.map(({ event }) => event)]
    const result = report(record, storedOf(all, policy), reading)
    events.push(...result.events)
    differences.push(...result.differences)
  }
  return { events, differences }
}
