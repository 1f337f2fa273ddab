import { randomBytes } from 'node:crypto'

/** Buys something once, or pays month after month. */
export type CustomerKind = 'buyer' | 'subscriber'

export interface SampleCustomer {
  /** Twelve hex digits; every id of the customer's holds them right after its prefix. */
  readonly key: string
  readonly kind: CustomerKind
}

const KEY_DIGITS = 12
const KEY_SPACE = 16 ** KEY_DIGITS

export const PRODUCT_OF: Readonly<Record<CustomerKind, string>> = {
  buyer: 'pro_report',
  subscriber: 'pro_gold',
}

/**
 * One customer of a generated store, every second a subscriber. Their keys rise evenly through the whole key
 * space, so that whoever comes later lands anywhere in the indexes.
 */
export function storedCustomer(index: number, customers: number): SampleCustomer {
  const key = Math.floor((index / customers) * KEY_SPACE)
  return { key: key.toString(16).padStart(KEY_DIGITS, '0'), kind: kindOf(index) }
}

/**
 * The indexes of all of them in a random order, as customers come. (Written in the order of their keys, the pages of
 * every index were full to the brim, and each later delivery split some: a store that nobody grows.)
 */
export function inOrderOfArrival(customers: number): Uint32Array {
  const order = Uint32Array.from({ length: customers }, (_, index) => index)
  for (let last = customers - 1; last > 0; last -= 1) {
    const drawn = Math.floor(Math.random() * (last + 1))
    const index = order[drawn] as number
    order[drawn] = order[last] as number
    order[last] = index
  }
  return order
}

/** Somebody whom no store has seen; every second one subscribes. */
export function newCustomer(index: number): SampleCustomer {
  return { key: randomBytes(KEY_DIGITS / 2).toString('hex'), kind: kindOf(index) }
}

/** A random one of those in a generated store. */
export function anyStoredCustomer(customers: number): SampleCustomer {
  return storedCustomer(Math.floor(Math.random() * customers), customers)
}

/** A random subscriber of those in a generated store. */
export function anyStoredSubscriber(customers: number): SampleCustomer {
  return storedCustomer(2 * Math.floor(Math.random() * Math.floor(customers / 2)) + 1, customers)
}

function kindOf(index: number): CustomerKind {
  return index % 2 === 0 ? 'buyer' : 'subscriber'
}
