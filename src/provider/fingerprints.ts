import { createHmac } from 'node:crypto'

/**
 * By what somebody erased is known, without telling it: HMAC-SHA-256, in base64url.
 *
 * Keyed, since addresses and account numbers are few enough to be guessed: a plain hash could be looked up in a table,
 * and be matched with that of any other store. Whoever has the key, which lies beside the hashes, can still test a
 * guess, so that both are for their owner alone.
 */
export interface Fingerprints {
  /** Of the store that made them, as text. */
  readonly key: string
  readonly known: readonly string[]
}

/** The same, to look up in. */
export interface KnownFingerprints {
  readonly key: string
  readonly known: ReadonlySet<string>
}

/** A `contact` leads to one person, a `name` to many; in lower case. */
export interface PersonWord {
  readonly kind: 'contact' | 'name'
  readonly word: string
}

export function fingerprintOf(key: string, { kind, word }: PersonWord): string {
  return createHmac('sha256', key).update(`${kind} ${word}`).digest('base64url')
}
