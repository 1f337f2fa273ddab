import type { Words } from './model.js'

/**
 * Every error code of both documents, by its status. Where the documents give a code no status, the sandbox chooses:
 * what is unknown is 404, what another state would allow 409, what is asked wrongly or against a rule 422, what the
 * merchant may not do 403, and what is out of order elsewhere 503.
 */
const BY_STATUS = {
  400: ['BAD_REQUEST IDEMPOTENCY_KEY_REQUIRED INVALID_ID CHECKOUT_SESSION_INVALID_SIGNATURE'],
  401: ['UNAUTHORIZED TOKEN_EXPIRED TOKEN_INVALID'],
  403: [
    'FORBIDDEN MFA_REQUIRED INSUFFICIENT_ROLE ENVIRONMENT_MISMATCH SANDBOX_ONLY LIVE_ONLY',
    'CRYPTO_ONLY_ORG KYB_NOT_APPROVED SUBY_BADGE_NOT_REMOVABLE CUSTOMER_EMAIL_LOCKED_MOR',
  ],
  404: [
    'NOT_FOUND ORG_NOT_FOUND MEMBERSHIP_NOT_FOUND PAYMENT_NOT_FOUND PRODUCT_NOT_FOUND',
    'CUSTOMER_NOT_FOUND PAYMENT_METHOD_NOT_FOUND SUBSCRIPTION_NOT_FOUND',
    'SUBSCRIPTION_CUSTOMER_NOT_FOUND SUBSCRIPTION_PRODUCT_NOT_FOUND TARGET_PRODUCT_NOT_FOUND',
    'NO_SCHEDULED_PLAN_CHANGE CUSTOMER_PAYMENT_METHOD_NOT_FOUND PAYOUT_NOT_FOUND',
    'SETUP_INTENT_NOT_FOUND SETUP_INTENT_CUSTOMER_NOT_FOUND CHECKOUT_SESSION_NOT_FOUND',
    'WEBHOOK_ENDPOINT_NOT_FOUND',
  ],
  409: [
    'CONFLICT INVALID_PAYMENT_STATUS_TRANSITION PAYMENT_NOT_CAPTURABLE PAYMENT_NOT_VOIDABLE',
    'BTC_NOT_AWAITING_APPROVAL SUBSCRIPTION_NOT_CANCELABLE SAME_PLAN PLAN_CHANGE_NOT_CANCELABLE',
    'PRODUCT_OUT_OF_STOCK CUSTOMER_ALREADY_EXISTS CUSTOMER_PAYMENT_METHOD_REVOKED',
    'CHECKOUT_ALREADY_COMPLETED PAYMENT_NOT_CANCELABLE IDEMPOTENCY_REQUEST_IN_PROGRESS',
  ],
  410: ['CHECKOUT_SESSION_EXPIRED'],
  422: [
    'UNPROCESSABLE_ENTITY IDEMPOTENCY_KEY_CONFLICT VALIDATION_ERROR MISSING_FIELD',
    'PAYMENT_NOT_REFUNDABLE CUSTOMER_NAME_REQUIRED CRYPTO_ASSET_NOT_ACCEPTED',
    'CRYPTO_PAYOUT_ADDRESS_MISSING CRYPTO_PAYMENT_BELOW_MIN CRYPTO_CURRENCY_NOT_SUPPORTED',
    'SOL_PAYER_ADDRESS_REQUIRED EVM_PAYER_ADDRESS_REQUIRED CRYPTO_AUTOSWAP_TARGET_MISSING',
    'CRYPTO_VAULT_NOT_PROVISIONED CRYPTO_STABLECOIN_DISABLED CRYPTO_VOLATILE_DISABLED',
    'PRODUCT_NOT_RECURRING PRODUCT_PRICE_MISSING FIRST_PAYMENT_DECLINED SUBSCRIPTION_NOT_MODIFIABLE',
    'TARGET_PRODUCT_NOT_RECURRING PLAN_CHANGE_CURRENCY_MISMATCH UPGRADE_REQUIRES_CARD',
    'PLAN_CHANGE_DECLINED PRODUCT_ARCHIVED RECURRING_REQUIRES_INTERVAL PAYOUT_NO_ROUTE',
    'PAYOUT_NO_PAYOUT_ACCOUNT PAYOUT_INSUFFICIENT_WITHDRAWABLE PAYOUT_MOR_NOT_SUPPORTED',
    'CHECKOUT_PRODUCT_INACTIVE CHECKOUT_SUBSCRIPTION_REQUIRES_RECURRING_PRODUCT',
    'CHECKOUT_METHOD_NOT_AVAILABLE CHECKOUT_ASSET_NOT_ACCEPTED CHECKOUT_EMAIL_REQUIRED',
    'CHECKOUT_BILLING_ADDRESS_REQUIRED CHECKOUT_PAYMENT_FAILED',
  ],
  429: ['RATE_LIMITED'],
  500: ['INTERNAL_SERVER_ERROR'],
  502: ['SETUP_INTENT_PROVIDER_ERROR'],
  503: [
    'PROVIDER_NOT_CONFIGURED CRYPTO_PRICE_FEED_UNAVAILABLE SOL_RPC_UNAVAILABLE EVM_RPC_UNAVAILABLE',
    'EVM_CONTRACT_NOT_DEPLOYED PAYOUT_RAIL_UNAVAILABLE CHECKOUT_QUOTE_UNAVAILABLE',
  ],
} as const

export type Code = Words<(typeof BY_STATUS)[keyof typeof BY_STATUS][number]>

export const CODES = Object.fromEntries(
  Object.entries(BY_STATUS).flatMap(([status, lines]) =>
    lines.flatMap((line) => line.split(' ').map((code) => [code, Number(status)])),
  ),
) as Readonly<Record<Code, number>>

export function isCode(text: string): text is Code {
  return Object.hasOwn(CODES, text)
}

interface ServiceErrorOptions {
  /** The answer's `data`. */
  readonly data?: object
  /** Where a code has more than one status. */
  readonly status?: number
  /** Whether what was done up to here stays done: a declined charge is on record. */
  readonly keepsChanges?: boolean
}

/** A documented refusal. */
export class ServiceError extends Error {
  readonly code: Code
  readonly status: number
  readonly data: object | undefined
  readonly keepsChanges: boolean

  constructor(code: Code, message: string, { data, status, keepsChanges = false }: ServiceErrorOptions = {}) {
    super(message)
    this.code = code
    this.status = status ?? CODES[code]
    this.data = data
    this.keepsChanges = keepsChanges
  }
}

export function refuse(code: Code, message: string, options?: ServiceErrorOptions): never {
  throw new ServiceError(code, message, options)
}

export interface FieldError {
  readonly field: string
  readonly message: string
}

export function invalidFields(...fieldErrors: readonly FieldError[]): ServiceError {
  return new ServiceError('VALIDATION_ERROR', 'The request is not valid.', { data: { fieldErrors } })
}
