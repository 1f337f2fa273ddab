import type { Environment, Rail } from '../../src/provider/event.js'
import { buildSampleEvent } from '../../src/provider/sample-event.js'
import { NOW } from './running-daemon.js'

export const CUSTOMER = 'cus_1'
export const PRODUCT = 'pro_gold'
export const PAYMENT = 'pay_1'
export const SUBSCRIPTION = 'sub_1'

/** What an event tells; null leaves it out. `minutes`: when it happened, counted from an hour before now. */
export interface Told {
  readonly id?: string
  readonly minutes?: number
  readonly customer?: string | null
  readonly product?: string | null
  readonly payment?: string | null
  readonly subscription?: string | null
  readonly rail?: Rail
  readonly environment?: Environment
  /** Fields of `data` that replace the documented sample's. */
  readonly data?: Readonly<Record<string, unknown>>
}

const HOUR_MS = 3_600_000

export function timeOf(minutes: number): number {
  return NOW - HOUR_MS + minutes * 60_000
}

/** Every field that may prove a rail, in either generation. */
const RAIL_FIELDS = ['method', 'source', 'txHash', 'decline_code', 'decline_category']

let sent = 0

/** A documented event of either generation: of a one-time payment by card, unless told otherwise. */
export function wireEvent(type: string, told: Told = {}): string {
  sent += 1
  const { id = `evt_${sent}`, minutes = 0, rail = 'card', environment = 'live' } = told
  const { customer = CUSTOMER, product = PRODUCT, payment = PAYMENT, subscription = null } = told
  const { body } = buildSampleEvent({
    type,
    eventId: id,
    createdAt: timeOf(minutes),
    environment,
    customerId: customer,
    productId: product,
    paymentId: payment,
    subscriptionId: subscription,
    rail: rail === 'unknown' ? 'card' : rail,
  })
  const event = JSON.parse(body, rail === 'unknown' ? leaveOutRail : undefined)
  return JSON.stringify({ ...event, data: { ...event.data, ...told.data } })
}

function leaveOutRail(key: string, value: unknown): unknown {
  return RAIL_FIELDS.includes(key) ? undefined : value
}
