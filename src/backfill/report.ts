/*
 * Reports: what the provider's own record of a payment or a subscription shows, and no stored event says. A report is an
 * event like all others, so that nothing else has to know about it. Pure: the records, the stored events and the instant
 * are arguments.
 */

import type { HistoryEvent } from '../entitlements/history.js'
import type { SourceKey } from '../entitlements/model.js'
import { type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { isReportedEventId } from '../provider/ids.js'
import type { JsonObject } from '../provider/json.js'
import { reportPayment } from './payment.js'
import { paymentRecord, subscriptionRecord } from './record.js'
import type { Reading, Report } from './reporter.js'
import { reportSubscription } from './subscription.js'

/** A record as read, in full; of a payment, also whether the legacy interface lists it as charged back. */
export type ReadRecord =
  | { readonly kind: 'payment'; readonly json: JsonObject; readonly isChargedBack: boolean }
  | { readonly kind: 'subscription'; readonly json: JsonObject }

/** Everything stored that reports depend on. It may hold more than one record asks for. */
export interface Stored {
  /** The newest link of each payment, by payment id. */
  readonly links: ReadonlyMap<string, PaymentLink>
  /** All events of each of the sources of `sourcesOf`, by `sourceKey`; new ones are missing. */
  readonly histories: ReadonlyMap<string, readonly HistoryEvent[]>
}

/** The payment whose link must be loaded before `sourcesOf` is asked; null: none. */
export function paymentIdOf({ kind, json }: ReadRecord): string | null {
  return kind === 'payment' && typeof json.id === 'string' ? json.id : null
}

/** The sources whose events a report depends on. */
export function sourcesOf({ kind, json }: ReadRecord, links: Stored['links']): readonly SourceKey[] {
  const { id, subscriptionId } = json
  if (typeof id !== 'string') return []
  if (kind === 'subscription') return [{ kind, id }]
  const named = [links.get(id)?.subscriptionId, subscriptionId].filter((one) => typeof one === 'string')
  const subscriptions = [...new Set(named)].map((one): SourceKey => ({ kind: 'subscription', id: one }))
  return [{ kind, id }, ...subscriptions]
}

/**
 * How many events were reported of a record since an event was the newest: where work was broken off and goes on, it finds
 * again what it has stored itself.
 */
export function reportedSince(
  record: ReadRecord,
  { links, histories }: Stored,
  newestBefore: number,
): number {
  const { id } = record.json
  const isOwn = (event: HistoryEvent) =>
    record.kind === 'subscription'
      ? event.subject === 'subscription'
      : event.subject === 'payment' && event.paymentId === id
  return sourcesOf(record, links)
    .flatMap((key) => histories.get(sourceKey(key)) ?? [])
    .filter((event) => event.seq > newestBefore && isReportedEventId(event.id) && isOwn(event)).length
}

/**
 * Decides what to report of one record: the events to store, in this order, and what no event can say.
 *
 * Subscriptions are read before payments, and reported after what was reported of their payments is stored: their cycles
 * and plans are dated by payments. To report the same record again stores nothing more.
 */
export function report(record: ReadRecord, { links, histories }: Stored, reading: Reading): Report {
  const eventsOf = (key: SourceKey) => histories.get(sourceKey(key)) ?? []
  if (record.kind === 'subscription') {
    const read = subscriptionRecord(record.json, reading)
    if (read === null) return unusable(record)
    return reportSubscription(read, eventsOf({ kind: 'subscription', id: read.id }), reading)
  }
  const read = paymentRecord(record.json, reading)
  if (read === null) return unusable(record)
  const link = links.get(read.id)
  const subscriptionId = read.said.subscriptionId ?? link?.subscriptionId ?? null
  const stored = {
    link,
    events: sourcesOf(record, links).flatMap(eventsOf),
    ofSubscription: subscriptionId === null ? [] : eventsOf({ kind: 'subscription', id: subscriptionId }),
  }
  return reportPayment(read, stored, record.isChargedBack, reading)
}

function unusable({ json: { id } }: ReadRecord): Report {
  const recordId = typeof id === 'string' ? id : ''
  return { events: [], differences: [{ code: 'record_unusable', recordId }] }
}
