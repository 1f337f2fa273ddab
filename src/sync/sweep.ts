import { setImmediate as turn } from 'node:timers/promises'
import { membershipPages } from '../store/memberships.js'
import type { SyncChange, WriteSync } from '../store/sync-writes.js'
import type { SyncContext } from './context.js'
import { ActionRequiredError, isOutage, type Platform, RetryableError } from './platform.js'
import type { SyncTarget } from './target.js'

/** How many memberships are compared at once. */
const CHUNK = 250

/** What is over is kept this long: what was removed within the hour counts, and people come back within the day. */
const KEPT_MS = 86_400_000
/** An account that left before it was taken from it may come back with it long after. */
const GONE_KEPT_MS = 90 * KEPT_MS

/**
 * Finds what the platforms have lost since, and who has come back with what could not be taken. Whom a platform fails
 * to list is only asked about again, and nothing is taken from whom it lists but what Latchkey gave.
 */
export function createSweep(context: SyncContext): () => Promise<void> {
  const { db, writeSync, gate, mayCall, clock, log } = context

  return async () => {
    if (!mayCall()) return
    await writeSync('saveSyncSettings', { sweptAt: clock() })
    for (const target of context.targets) {
      await forget(target)
      const platform = context.platforms.get(target.adapter)
      // Where nothing else is due, the sweep itself finds out whether a limit is over.
      if (platform === undefined || !mayCall() || gate.passage(target, clock()) === 'closed') continue
      // What waits for something that may come by itself, such as somebody joining.
      const { environment } = target
      await retryAll(writeSync, { environments: [environment], target: target.target, healing: true })
      try {
        await compare(target, platform)
      } catch (error) {
        if (!(error instanceof RetryableError || error instanceof ActionRequiredError)) throw error
        // An outage has a warning of its own.
        const level = isOutage(error) ? 'debug' : 'warn'
        const { adapter: platform, target: name } = target
        const fields = { platform, target: name, code: error.code, reason: error.message }
        log[level](fields, 'the members could not be read')
        // That one call is refused says nothing else: the members are asked about one by one.
        gate.failed(target, error, clock())
      }
    }
  }

  async function compare(target: SyncTarget, platform: Platform): Promise<void> {
    const happening = { kind: 'recheck', before: clock() } as const
    const listed = await listOf(platform, target)
    for await (const page of membershipPages(db, target, CHUNK)) {
      // A member who is not listed, or somebody who is back.
      const differ = page.filter(({ state, desired, applied, accountId }) => {
        const isListed = listed?.has(accountId) ?? false
        return state === 'gone' ? isListed : desired && applied === 'member' && !isListed
      })
      const { environment, target: name } = target
      const steps = differ.map(({ accountId }) => ({
        key: { environment, target: name, accountId },
        happening,
      }))
      if (steps.length > 0) await writeSync('stepMemberships', steps)
      await turn()
    }
  }

  /** Null where the platform lists nobody: each is to be asked about. */
  async function listOf(platform: Platform, target: SyncTarget): Promise<ReadonlySet<string> | null> {
    if (platform.listMembers === null) return null
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

/** Makes due now, a stretch at a time, all that a filter matches. */
export async function retryAll(writeSync: WriteSync, filter: SyncChange<'retryMemberships'>): Promise<void> {
  while (await writeSync('retryMemberships', filter)) await turn()
}
