import { ActionRequiredError, RetryableError } from '../../platform-errors.js'

/** Two programs that fetch end each other's polls by turns, and each is served now and then: one good poll proves little. */
const CONFLICT_LASTS_MS = 2 * 60_000

export interface ReceptionDeps {
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** Told when something begins to keep updates out that somebody has to mend, and when it does no more. */
  readonly changed: () => void
}

/** How it goes with receiving updates, as whoever receives them has met it since the start. */
export interface Reception {
  /** Telegram has taken note of how they are to come. */
  agreed(): void
  went(): void
  failed(error: unknown): void
  /** Since when they come as agreed, in epoch milliseconds; null: Telegram has not taken note yet. */
  agreedAt(): number | null
  /** What keeps them out now; null: nothing does. */
  failure(): unknown
}

export function createReception({ clock, changed }: ReceptionDeps): Reception {
  let agreedAt: number | null = null
  let failure: unknown = null
  let failedAt = 0

  function become(next: unknown): void {
    const before = failure
    failure = next
    if (isForSomebody(before) !== isForSomebody(next)) changed()
  }

  return {
    agreed() {
      agreedAt = clock()
    },
    went() {
      if (!isConflict(failure) || clock() >= failedAt + CONFLICT_LASTS_MS) become(null)
    },
    failed(error) {
      failedAt = clock()
      become(error)
    },
    agreedAt: () => agreedAt,
    failure: () => failure,
  }
}

/** Another program receives the updates of this bot. */
export function isConflict(error: unknown): boolean {
  return error instanceof RetryableError && error.code === 'telegram_conflict'
}

function isForSomebody(failure: unknown): boolean {
  return failure instanceof ActionRequiredError || isConflict(failure)
}
