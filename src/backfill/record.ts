/* A payment or a subscription as the provider's API shows it: the fields that reports are decided by. */

import type { PaymentEvent, SubscriptionEvent } from '../provider/event.js'
import { PAYMENT_REPORTED, SUBSCRIPTION_REPORTED } from '../provider/event-types.js'
import { instant, text } from '../provider/fields.js'
import { isJsonObject, type JsonObject } from '../provider/json.js'
import { type Missing, type Reading, reportedEvent } from './reporter.js'

interface RecordFields {
  readonly id: string
  /** Upper case, as in the provider's documents. */
  readonly status: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly updatedAt: number
  /** The record as read. */
  readonly json: JsonObject
}

/** `said` is what an event says whose data is the record: so its ids and its rail are read as those of all events. */
export interface PaymentRecord extends RecordFields {
  readonly said: PaymentEvent
  /** Every status with the instant at which it began, oldest first; empty if the provider kept none. */
  readonly timeline: readonly { readonly status: string; readonly at: number }[]
  /** When the money came, in any of the fields that say so. */
  readonly paidAt: number | null
  readonly refundedAt: number | null
}

/** `said.expiresAt` is the end of the paid period; null: no renewal is due. */
export interface SubscriptionRecord extends RecordFields {
  readonly said: SubscriptionEvent
}

/** Null without an id, a status or the instant of its creation: nothing follows from such a record. */
function fieldsOfAll(json: JsonObject): RecordFields | null {
  const { id } = json
  const status = text(json.status)?.toUpperCase()
  const createdAt = instant(json.createdAt, json.created_at)
  if (typeof id !== 'string' || status === undefined || createdAt === null) return null
  return { id, status, createdAt, updatedAt: instant(json.updatedAt, json.updated_at) ?? createdAt, json }
}

/** Null if the record can't be used. */
export function paymentRecord(json: JsonObject, reading: Reading): PaymentRecord | null {
  const fields = fieldsOfAll(json)
  const said = fields && saidBy(fields, PAYMENT_REPORTED, reading)
  if (fields === null || said?.subject !== 'payment') return null
  const timeline = Array.isArray(json.statusTimeline) ? json.statusTimeline : []
  return {
    ...fields,
    said,
    timeline: timeline.filter(isJsonObject).flatMap((entry) => {
      const [status, at] = [text(entry.status), instant(entry.at)]
      return status === null || at === null ? [] : { status: status.toUpperCase(), at }
    }),
    paidAt: instant(json.paymentReceivedAt) ?? instant(json.paymentSettledAt),
    refundedAt: instant(json.refundedAt),
  }
}

/** Null if the record can't be used. */
export function subscriptionRecord(json: JsonObject, reading: Reading): SubscriptionRecord | null {
  const fields = fieldsOfAll(json)
  const said = fields && saidBy(fields, SUBSCRIPTION_REPORTED, reading)
  return fields === null || said?.subject !== 'subscription' ? null : { ...fields, said }
}

function saidBy({ id, json, updatedAt }: RecordFields, type: Missing['type'], reading: Reading) {
  return reportedEvent(id, { type, at: updatedAt, data: json }, reading)?.event
}
