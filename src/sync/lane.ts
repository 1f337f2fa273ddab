import { setImmediate as turn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import pLimit from 'p-limit'
import type { Membership } from '../store/membership.js'
import { type DueKind, loadDueMemberships, nextDueAt } from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import { createDrive, type DriveDeps, type DriveResult } from './drive.js'
import { oneAtATime } from './one-at-a-time.js'
import type { Platform } from './platform.js'
import { isHeld, type RemovalBound } from './removal-bound.js'
import type { AdapterName } from './target.js'
import type { SyncTarget } from './targets.js'

/** How much of a platform's work is looked up at once: a slow call keeps no more than this waiting. */
const ROUND = 64

/** Removals that nobody has agreed to come last, after what waits for access. */
const ORDER: readonly DueKind[] = ['give', 'agreedTake', 'take', 'recheck']

export interface LaneDeps extends DriveDeps {
  /** Reads. */
  readonly db: Kysely<Database>
  readonly name: AdapterName
  /** Asked at every round, since a reload may change it; null: none is configured. */
  readonly platform: () => Platform | null
  /** Those of the platform, configured or not. */
  readonly targets: () => readonly SyncTarget[]
  readonly bound: () => RemovalBound
  /** Whether calls may be begun. */
  readonly mayCall: () => boolean
  /** Told of every membership that was driven, and by what name. */
  readonly onDriven: (target: SyncTarget, result: DriveResult) => void
  /** Told whenever it is looked at whether removals of a target wait for an operator. */
  readonly onBound: (target: SyncTarget, held: boolean) => void
}

/** Works off what is due on one platform. */
export interface Lane {
  /** Resolves when nothing is due any more that may be done. */
  work(): Promise<void>
  /** When something comes due, in epoch milliseconds; null: nothing does by itself. */
  nextAt(): Promise<number | null>
}

interface Picked {
  readonly membership: Membership
  readonly target: SyncTarget
}

export function createLane(deps: LaneDeps): Lane {
  const { db, name, gate, targets, bound, mayCall, onDriven, onBound, clock } = deps
  const drive = createDrive(deps)
  const scopeOf = ({ target }: SyncTarget) => ({ platform: name, target })

  async function pick(target: SyncTarget, most: number): Promise<readonly Picked[]> {
    const picked: Membership[] = []
    for (const kind of ORDER) {
      if (picked.length >= most) break
      const due = await loadDueMemberships(db, target, kind, clock(), most - picked.length)
      // After they were read: what has come to wait since is counted, too.
      const isWaiting = kind === 'take' && due.length > 0 && (await isHeld(db, target, bound(), clock()))
      if (kind === 'take') onBound(target, isWaiting)
      const known = new Set(picked.map(({ accountId }) => accountId))
      if (!isWaiting) picked.push(...due.filter(({ accountId }) => !known.has(accountId)))
    }
    return picked.map((membership) => ({ membership, target }))
  }

  /** @returns whether anything was done */
  async function round(): Promise<boolean> {
    const platform = deps.platform()
    if (platform === null) return false
    const limit = pLimit(platform.concurrency)
    const passages = targets().map((target) => ({ target, passage: gate.passage(scopeOf(target), clock()) }))
    const open = passages.filter(({ passage }) => passage === 'open')
    const picked: Picked[] = []
    for (const { target } of open) picked.push(...(await pick(target, Math.ceil(ROUND / open.length))))
    // Whoever has limited us is asked by one call, and by no other beside it.
    for (const { target } of passages.filter(({ passage }) => passage === 'probe')) {
      const probe = await pick(target, 1)
      picked.push(...probe)
      if (probe.length > 0) break
    }
    const results = await Promise.all(picked.map((one) => limit(() => driveOne(platform, one))))
    return results.includes(true)
  }

  async function driveOne(platform: Platform, { membership, target }: Picked): Promise<boolean> {
    // What was found out since it was picked may forbid the call.
    if (!mayCall() || gate.passage(scopeOf(target), clock()) === 'closed') return false
    onDriven(target, await drive(platform, membership, target.of))
    return true
  }

  return {
    work: oneAtATime(async () => {
      while (mayCall() && (await round())) await turn()
    }),
    async nextAt() {
      const times: number[] = []
      for (const target of targets()) {
        const opensAt = deps.platform() === null ? null : gate.opensAt(scopeOf(target))
        if (opensAt === null) continue
        const held = await isHeld(db, target, bound(), clock())
        const dueAt = await nextDueAt(db, target, held ? ORDER.filter((kind) => kind !== 'take') : ORDER)
        if (dueAt !== null) times.push(Math.max(dueAt, opensAt))
      }
      return times.length === 0 ? null : Math.min(...times)
    },
  }
}
