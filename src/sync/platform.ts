import type { AdapterName, Target } from './target.js'

/** What the platform says of one account and one target. */
export type Observation = 'member' | 'absent'

/** What a check of the configuration found on the platform: in order, or what to do. */
export interface CheckFinding {
  /** `targetKey`, or for what concerns all targets of an adapter its name; a part of that follows after a colon. */
  readonly about: string
  readonly isFine: boolean
  /** Nothing was learnt: the platform limits, is down, or did not answer in time. */
  readonly isUnknown?: true
  /** For people: what stands, or what to do about it. */
  readonly message: string
}

/**
 * One community or messenger, as the reconciler drives it. Every call is made at most once here: whether and when it
 * is repeated the reconciler decides. All calls may reject with `RetryableError` or `ActionRequiredError`, and with
 * nothing else; no error holds a token. `give` and `take` may be repeated after an unknown outcome.
 */
export interface Platform<Of extends Target = Target> {
  readonly name: AdapterName
  /** How many calls may be under way at once. */
  readonly concurrency: number
  observe(target: Of, accountId: string): Promise<Observation>
  /** Done already counts as done. */
  give(target: Of, accountId: string): Promise<void>
  /** Done already counts as done. `gone`: the account is not there; should it come back, it may hold it still. */
  take(target: Of, accountId: string): Promise<'gone' | undefined>
  /**
   * Every account that holds the membership now, whoever gave it; null where the platform doesn't list them. Rejects
   * with the code `members_not_listable` where the bot may not: each row is then looked at by itself.
   */
  readonly listMembers: ((target: Of) => AsyncIterable<string>) | null
  /** Asks the platform whether all that these targets need is there. */
  check(targets: readonly Of[]): Promise<readonly CheckFinding[]>
}
