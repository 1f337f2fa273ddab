/*
 * Writes events as the documents show them: the envelope, the names of fields in v3, and the `data` of legacy events, of
 * which every field is documented.
 */

import { ACCOUNT_FACTS, ofEach, PLATFORMS } from './accounts.js'
import { ofCustomer } from './customer.js'
import type { Environment } from './event.js'
import { WIRE_TYPES } from './event-types.js'
import { formatInstant } from './instant.js'

export const API_VERSION = '3.0.0-beta'

interface WireEvent {
  readonly id: string
  /** Its wire name, which shows the generation. */
  readonly type: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly environment: Environment
  /** With names in camelCase. */
  readonly data: object
}

/** The exact text to sign and send. */
export function writeEvent({ id, type, createdAt, environment, data }: WireEvent): string {
  const envelope = { id, type, createdAt: formatInstant(createdAt) }
  if (WIRE_TYPES.v2.includes(type)) return JSON.stringify({ ...envelope, data })
  const version = { api_version: API_VERSION, livemode: environment === 'live' }
  return JSON.stringify({ ...envelope, ...version, data: inSnakeCase(data) })
}

/** Of each name of a field: every event has the same ones. */
const SNAKE_CASE = new Map<string, string>()

/** What is in a list, and what the merchant put into `metadata`, keeps its names. */
function inSnakeCase(value: object): object {
  const entries = Object.entries(value).map(([name, one]) => {
    const isNested = typeof one === 'object' && one !== null && !Array.isArray(one) && name !== 'metadata'
    const snake = SNAKE_CASE.get(name) ?? name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    SNAKE_CASE.set(name, snake)
    return [snake, isNested ? inSnakeCase(one) : one]
  })
  return Object.fromEntries(entries)
}

/** What legacy events say of a person; a detail that is missing is shown as null. */
export interface LegacyPerson {
  readonly id: string | null
  readonly email: string | null
  readonly communityId?: string | null | undefined
  readonly messengerId?: string | null | undefined
  readonly communityUsername?: string | null | undefined
  readonly messengerUsername?: string | null | undefined
}

/** Amounts are in cents. */
export interface LegacyPayment {
  readonly id: string | null
  readonly status: string | undefined
  readonly subscriptionId: string | null
  readonly productId: string | null
  readonly currency: string
  readonly priceCents: number
  readonly valueUsd: string
  readonly vatAmountCents: number
  readonly grossAmountCents: number
  readonly refundedAmountCents: number | null
  readonly txHash: string | null
  readonly source: 'FIAT' | 'CRYPTO' | null
}

const ACCOUNT_NAMES = Object.values(PLATFORMS).map(({ username }) => username)

/** The buyer, in fields of the payment itself. @param person undefined: nobody is known */
function buyerIn(person: LegacyPerson | undefined, details: readonly (keyof LegacyPerson)[]): object {
  return Object.fromEntries(details.map((name) => [ofCustomer(name), person?.[name] ?? null]))
}

/** The `data` of a payment event. @param context what the merchant sent with the payment */
export function legacyPaymentData(
  payment: LegacyPayment,
  person: LegacyPerson | undefined,
  context: object,
): object {
  const { id, status, subscriptionId, productId, currency, priceCents, valueUsd, txHash, source } = payment
  const isCrypto = source === 'CRYPTO'
  return {
    payment: {
      ...{ id, status, subscriptionId, productId, valueUsd, priceCents: String(priceCents), currency },
      vatAmountCents: isCrypto ? null : payment.vatAmountCents,
      totalAmountCents: isCrypto ? null : payment.grossAmountCents,
      refundedAmountCents: isCrypto ? null : payment.refundedAmountCents,
      ...{ txHash, source },
      ...buyerIn(person, ['id', 'email', ...ACCOUNT_FACTS, ...ACCOUNT_NAMES]),
    },
    context,
  }
}

interface LegacySubscription extends Pick<LegacyPayment, 'id' | 'status' | 'productId'> {
  /** Epoch milliseconds. */
  readonly expiresAt: number | null
}

/** The newest payment of a subscription. */
interface LegacyLastPayment extends Pick<LegacyPayment, 'id' | 'status' | 'priceCents' | 'currency'> {
  /** Epoch milliseconds. */
  readonly createdAt: number
}

/** The `data` of a subscription event. @param last null: there is none */
export function legacySubscriptionData(
  { id, status, productId, expiresAt }: LegacySubscription,
  last: LegacyLastPayment | null,
  person: LegacyPerson | undefined,
  context: object,
): object {
  const details = ['id', 'email', ...ACCOUNT_FACTS, ...ACCOUNT_NAMES] as const
  return {
    subscription: { id, status, productId, expiresAt: expiresAt === null ? null : formatInstant(expiresAt) },
    lastPayment: last && {
      ...{ id: last.id, status: last.status, priceCents: String(last.priceCents), currency: last.currency },
      createdAt: formatInstant(last.createdAt),
    },
    customer: ofEach(details, (name) => person?.[name] ?? null),
    context,
  }
}

/** Amounts are in cents, instants are epoch milliseconds. */
interface LegacyPayout {
  readonly id: string
  readonly payoutAmountCents: number
  readonly paidOutAt: number
}

interface LegacySettledPayment extends LegacyPayment {
  readonly merchantNetCents: number
  readonly externalRef: string | null
}

/** The `data` of `PAYMENT_SETTLED`: one payout of one payment. Real events contain many of both. */
export function legacySettledData(
  { id: payoutId, payoutAmountCents, paidOutAt }: LegacyPayout,
  payment: LegacySettledPayment,
  person: LegacyPerson | undefined,
): object {
  const { id, productId, subscriptionId, currency, grossAmountCents, merchantNetCents, externalRef } = payment
  return {
    payouts: [{ id: payoutId, payoutAmountCents, currency, paidOutAt: formatInstant(paidOutAt) }],
    payments: [
      {
        ...{ id, payoutId, productId, subscriptionId, priceCents: String(payment.priceCents), currency },
        ...{ grossAmountCents, merchantNetCents, externalRef },
        ...buyerIn(person, ['id', 'email', ...ACCOUNT_FACTS]),
      },
    ],
  }
}
