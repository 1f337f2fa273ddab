/* Collects what is reported of one record, and makes the events. */

import { createHash } from 'node:crypto'
import type { HistoryEvent } from '../entitlements/history.js'
import type { SourceEvent } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import type { Environment, PaymentEvent, SubscriptionEvent } from '../provider/event.js'
import { REPORTED_ID_PREFIX } from '../provider/ids.js'
import type { JsonObject } from '../provider/json.js'
import { normalise } from '../provider/normalise.js'

/** One reading of a record. */
export interface Reading {
  readonly environment: Environment
  /**
   * When it began, in epoch milliseconds: by our clock, or by the newest event if that is later, where the provider's
   * clock may be far ahead of ours.
   */
  readonly at: number
  /** How far ahead of that an event may be dated; left out: a day. */
  readonly aheadAtMostMs?: number
  /** The number of the newest stored event when it began: what came later may be newer than the record. */
  readonly newestSeq: number
  /** What asked for it. */
  readonly by: 'backfill' | 'hydrate'
  /** The policy in force. */
  readonly policy: Policy
}

type Reportable = PaymentEvent | SubscriptionEvent

/** An event to store: the bytes of its envelope, and what they are read as. */
export interface ReportedEvent {
  readonly body: Buffer
  readonly event: Reportable
}

/** What no event can tell, or nobody can know. */
export const DIFFERENCE_TEXT = {
  record_unusable: 'lacks an id, a status or a date, or names an id that could not be kept',
  record_older: 'is older than what webhooks have said since',
  read_again: 'may have changed while it was read: read it again',
  status_unexplained: 'has a status whose meaning for access is not documented',
  not_reportable: 'differs from the stored events in a way that one more event would not change',
  cancellation_end_unknown:
    'is canceled for the end of a period that it no longer shows: access ends at once',
  term_end_unknown: 'is in the last cycle of its term, and shows no end',
  authorization_unknown: 'shows no history, and no event says when it was authorized, if it was',
  cycle_payment_unclear: 'does not show which payment paid its cycle',
  plan_charge_unclear: 'was paid for changes of its plan that no event tells',
  chargeback_date_unknown: 'was charged back at an unknown time, and a later payment had been made by then',
} as const
export type DifferenceCode = keyof typeof DIFFERENCE_TEXT

export interface Difference {
  readonly code: DifferenceCode
  readonly recordId: string
  /** The type of the event that would have been reported, or the status. */
  readonly about?: string
}

/** The result for one record: events to store, in order, and what remains different. */
export interface Report {
  readonly events: readonly ReportedEvent[]
  readonly differences: readonly Difference[]
}

/** An event that is missing. */
export interface Missing {
  readonly type: Reportable['type']
  /** Epoch milliseconds. */
  readonly at: number
  readonly data: JsonObject
}

export type Reporter = ReturnType<typeof createReporter>

/**
 * @param recordId as the provider names it
 * @param known the stored events that matter
 */
export function createReporter(recordId: string, known: readonly HistoryEvent[], reading: Reading) {
  let events: readonly SourceEvent[] = known.filter((event) => event.subject !== 'manual')
  const reported: ReportedEvent[] = []
  const differences: Difference[] = []

  /** A rule that is asked twice notes the same twice. */
  function note(code: DifferenceCode, about?: string): void {
    if (differences.some((one) => one.code === code && one.about === about)) return
    differences.push({ code, recordId, ...(about !== undefined && { about }) })
  }

  /** Whether it was added. */
  function add(missing: Missing): boolean {
    const made = reportedEvent(recordId, missing, reading)
    if (made === null || events.some(({ id }) => id === made.event.id)) {
      note(made === null ? 'record_unusable' : 'not_reportable', missing.type)
      return false
    }
    events = [...events, made.event]
    reported.push(made)
    return true
  }

  return {
    /** The stored events and the reported ones. */
    events: () => events,
    reported: (): readonly ReportedEvent[] => reported,
    note,
    add,
    /** The event that would be added. */
    read: (missing: Missing) => reportedEvent(recordId, missing, reading)?.event,
    /** Reports what a rule misses; but not if the rule would miss it again, so that no run repeats it. */
    settle(rule: () => Missing | null): void {
      const missing = rule()
      if (missing === null) return
      const before = events
      if (!add(missing) || rule() === null) return
      events = before
      reported.pop()
      note('not_reportable', missing.type)
    },
    report: (): Report => ({ events: reported, differences }),
  }
}

const UTF8 = new TextEncoder()

/**
 * The event of a type that a record is evidence of; null if it could not be used. Its id is the same whenever the record
 * is read: NUL can be in no id that is kept.
 */
export function reportedEvent(recordId: string, { type, at, data }: Missing, reading: Reading) {
  const { environment, by } = reading
  if (Number.isNaN(new Date(at).getTime())) return null
  const createdAt = new Date(at).toISOString()
  const hashed = ['reported', environment, recordId, type, createdAt].join('\0')
  const id = `${REPORTED_ID_PREFIX}${createHash('sha256').update(hashed).digest('hex').slice(0, 24)}`
  const text = JSON.stringify({
    ...{ id, type, createdAt, livemode: environment === 'live' },
    data: { ...data, ...(typeof data.status === 'string' && { status: data.status.toLowerCase() }) },
    reported: { at: new Date(reading.at).toISOString(), by },
  })
  // In memory of its own: a body that lives longer would keep all that shares its memory.
  const body = Buffer.from(UTF8.encode(text).buffer)
  const read = normalise(body, {
    ...{ environment, receivedAt: reading.at, isReport: true },
    aheadAtMostMs: reading.aheadAtMostMs,
  })
  if (!read.ok || (read.event.subject !== 'payment' && read.event.subject !== 'subscription')) return null
  return { body, event: read.event }
}

/** An instant, or a millisecond after the newest of these events, if that is later. */
export function atOrAfter(at: number, events: readonly Pick<SourceEvent, 'createdAt'>[]): number {
  return events.reduce((latest, { createdAt }) => Math.max(latest, createdAt + 1), at)
}
