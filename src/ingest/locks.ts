/* What a transaction locks, where several write beside each other. */

import type { Environment } from '../provider/event.js'

export type LockKind = 'payment' | 'subscription' | 'customer' | 'event'

/** One thing that no two transactions change at the same time. */
export interface Lock {
  readonly environment: Environment
  readonly kind: LockKind
  readonly id: string
}

/** No id contains the character between the parts. */
export function lockName({ environment, kind, id }: Lock): string {
  return [environment, kind, id].join('\0')
}

/** One that needs more is alone: PostgreSQL has room for some thousand locks of all transactions together. */
export const LOCKS_AT_MOST = 2_000

/** The locks of a transaction: what it has, and what it turns out to need. */
export interface Locks {
  need(lock: Lock): void
}

/** Of a transaction that is alone: it needs none. */
export const ALONE: Locks = { need() {} }

/** The transaction must not write: what it has read may be changing. All is to be locked at once, in another one. */
export class NotLockedError extends Error {
  readonly missing: readonly Lock[]

  constructor(missing: readonly Lock[]) {
    super('A transaction needs more locks than it has.')
    this.missing = missing
  }
}

/** @param held by `lockName` */
export function createLocks(held: ReadonlyMap<string, Lock>) {
  const missing = new Map<string, Lock>()
  return {
    need(lock: Lock): void {
      const name = lockName(lock)
      if (!held.has(name)) missing.set(name, lock)
    },
    /** @throws {NotLockedError} */
    assertHeld(): void {
      if (missing.size > 0) throw new NotLockedError([...missing.values()])
    },
  }
}
