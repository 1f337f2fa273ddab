/**
 * Why access ended, or will end, in words. A file by itself, so that the console shows the same words without the rest of
 * this folder.
 */
export const END_REASON_TEXT = {
  failed: 'the payment failed',
  refunded: 'the payment was refunded',
  charged_back: 'the payment was charged back',
  voided: 'the payment was canceled',
  expired: 'the subscription expired',
  canceled: 'the subscription was canceled',
  completed: 'its fixed term ends',
  lapsed: 'no renewal came in time',
  moved: 'the plan was changed to another product',
  revoked: 'it was revoked by hand',
} as const

/** Why access with a status is as it is. */
export const STATUS_TEXT = {
  ...END_REASON_TEXT,
  active: 'has access',
  ending: 'has access until the period ends',
  blocked: 'blocked by hand',
  none: 'no stored event grants it',
  // An erasure leaves this status, too.
  revoked: 'it was revoked by hand, or the customer was erased',
} as const
