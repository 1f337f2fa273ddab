import type { Environment } from '../../../provider/event.js'

/** Where changes of access are posted. It holds secrets: the address itself may be one, but for its origin. */
export interface WebhookAddress {
  readonly url: string
  /** `whsec_` and base64; each signs, so that the receiver may change from one to the next. */
  readonly secrets: readonly string[]
  readonly environments: readonly Environment[]
}

/** What may be told of an address: neither its credentials nor its path nor its query. */
export function originOf({ url }: WebhookAddress): string {
  return new URL(url).origin
}
