/** A time to wait, by the wall clock. Instants are epoch milliseconds. */
export interface Wait {
  readonly since: number
  readonly until: number
}

/**
 * The wait as it stands at `now`. A clock that was set back to before it began must not make it last until the clock
 * has caught up: it begins anew then, and is never cut short.
 */
export function standingAt<Of extends Wait>(wait: Of, now: number): Of {
  return now < wait.since ? { ...wait, since: now, until: now + (wait.until - wait.since) } : wait
}
