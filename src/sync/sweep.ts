import { setImmediate as turn } from 'node:timers/promises'
import { membershipPages } from '../store/memberships.js'
import type { SyncContext } from './context.js'
import { ActionRequiredError, isOutage, type Platform, RetryableError } from './platform.js'
import type { SyncTarget } from './target.js'
import { type SyncChange, stepOf, type WriteSync } from './writes.js'

/** How many memberships are compared at once. */
const CHUNK = 250

/**
 * How long finished memberships are kept: the bound counts removals of the last hour, and people return within a day.
 */
const KEPT_MS = 86_400_000
/** An account that left before its membership was removed may come back with it much later. */
const GONE_KEPT_MS = 90 * KEPT_MS

/**
 * Finds memberships that the platforms have lost, and accounts that came back with one that could not be taken. An
 * account missing from a list is only checked again, and only memberships that Latchkey gave are taken.
 */
export function createSweep(context: SyncContext): () => Promise<void> {
  const { db, writeSync, gate, mayCall, clock, log } = context

  return async () => {
    if (!mayCall()) return
    await writeSync('saveSyncSettings', { sweptAt: clock() })
    for (const target of context.targets) {
      await forget(target)
      const platform = context.platforms.get(target.adapter)
      // If nothing else is due, the sweep itself tests whether a limit is over.
      if (platform === undefined || !mayCall() || gate.permit(target, clock()) === 'blocked') continue
      // Memberships whose problem may go away by itself, such as when somebody joins.
      const { environment } = target
      await retryAll(writeSync, { environments: [environment], target: target.target, healing: true })
      try {
        await compare(target, platform)
      } catch (error) {
        if (!(error instanceof RetryableError || error instanceof ActionRequiredError)) throw error
        // Outages are logged separately.
        const level = isOutage(error) ? 'debug' : 'warn'
        const { adapter: platform, target: name } = target
        const fields = { platform, target: name, code: error.code, reason: error.message }
        log[level](fields, 'could not list the members')
        // The refusal of this call says nothing about others: check the members one by one.
        gate.failed(target, error, clock())
      }
    }
  }

  async function compare(target: SyncTarget, platform: Platform): Promise<void> {
    const event = { kind: 'recheck', before: clock() } as const
    const listed = await listOf(platform, target)
    for await (const page of membershipPages(db, target, CHUNK)) {
      // A member who is not listed, or an account that is back.
      const differ = page.filter(({ state, desired, applied, accountId }) => {
        const isListed = listed?.has(accountId) ?? false
        return state === 'gone' ? isListed : desired && applied === 'member' && !isListed
      })
      const steps = differ.map((membership) => stepOf(membership, event))
      if (steps.length > 0) await writeSync('stepMemberships', steps)
      await turn()
    }
  }

  /** Null if the platform lists nobody: check each one. */
  async function listOf(platform: Platform, target: SyncTarget): Promise<ReadonlySet<string> | null> {
    if (platform.listMembers === undefined) return null
    const listed = new Set<string>()
    for await (const accountId of platform.listMembers(target.of)) listed.add(accountId)
    gate.answered(target, clock())
    return listed
  }

  async function forget({ environment, target }: SyncTarget): Promise<void> {
    const now = clock()
    const over = { environment, target, before: now - KEPT_MS, goneBefore: now - GONE_KEPT_MS }
    while (await writeSync('forgetMemberships', over)) await turn()
  }
}

/** Makes all memberships that match a filter due now, in chunks. */
export async function retryAll(writeSync: WriteSync, filter: SyncChange<'retryMemberships'>): Promise<void> {
  while (await writeSync('retryMemberships', filter)) await turn()
}
