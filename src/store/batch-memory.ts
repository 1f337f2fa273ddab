import type { Transaction } from 'kysely'
import type { PaymentLink } from '../entitlements/source-of.js'
import type { CustomerRecord } from './customer-facts.js'
import { writesSeenBy } from './dialect.js'
import type { Database } from './schema.js'

/** What was lately read or written, by key: the oldest goes where there is too much. */
export interface Recent<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): void
}

/**
 * What a batch knows of the tables without asking them, in either environment: a customer's events come close to
 * one another. Whoever changes a table of these within the batch tells it here too.
 */
export interface BatchMemory {
  /** By `customerKey`. */
  readonly customers: Recent<CustomerRecord>
  /** References that are stored, by all that they say. */
  readonly references: Recent<true>
  /** By `paymentKey`; null: nothing links the payment. */
  readonly links: Recent<PaymentLink | null>
}

/** Some minutes of many deliveries, in some megabytes. */
const KEPT_OF_EACH = 2_000

export interface KeptMemory {
  /** To be asked as a transaction begins: nothing, where anybody else has written since the last batch. */
  begin(trx: Transaction<Database>): BatchMemory
  /** To be told as its work ends; what it has learned counts from `committed` on. */
  end(trx: Transaction<Database>): void
  committed(): void
}

/**
 * Keeps from one batch to the next what the batches have learned, as long as nothing else writes: neither on the
 * same connection (a rebuild, a replay, a batch that fails and is rolled back) nor beside it.
 */
export function createKeptMemory(): KeptMemory {
  let memory = createBatchMemory()
  let writesSeen: string | null = null
  let ended: string | null = null
  return {
    begin(trx) {
      const seen = writesSeenBy(trx)
      if (seen === null || seen !== writesSeen) memory = createBatchMemory()
      // Until it is committed, nobody knows what will stand of what this one learns.
      writesSeen = null
      return memory
    },
    end: (trx) => {
      ended = writesSeenBy(trx)
    },
    committed: () => {
      writesSeen = ended
    },
  }
}

function createBatchMemory(): BatchMemory {
  return {
    customers: createRecent(),
    references: createRecent(),
    links: createRecent(),
  }
}

function createRecent<Value>(): Recent<Value> {
  const values = new Map<string, Value>()
  return {
    get: (key) => values.get(key),
    set(key, value) {
      values.set(key, value)
      if (values.size <= KEPT_OF_EACH) return
      for (const oldest of values.keys()) {
        values.delete(oldest)
        break
      }
    },
  }
}
