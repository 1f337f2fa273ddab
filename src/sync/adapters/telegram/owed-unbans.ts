/** One account in one group, by the id that the config has. */
export interface GroupAccount {
  readonly groupId: string
  readonly accountId: string
}

/**
 * Bans of Latchkey's own that may stand: a removal was interrupted before it lifted its ban. Outlives a restart, and
 * tells such a ban from one that staff gave, which stays.
 */
export interface OwedUnbans {
  isOwed(owed: GroupAccount): Promise<boolean>
  owe(owed: GroupAccount): Promise<void>
  settle(owed: GroupAccount): Promise<void>
}
