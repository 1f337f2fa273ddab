import { PLATFORM_NAMES } from '../provider/accounts.js'
import type { SyncContext } from './context.js'
import { isPlatform } from './outages.js'
import { type CheckFinding, failedCheck } from './platform.js'
import { type AdapterName, targetKey } from './target.js'

/** Time enough for somebody to fix a problem, or for a platform to recover. */
const REPEAT_MS = 5 * 60_000

/** A problem found by a check that somebody has to fix. */
export interface CheckReport {
  /** Epoch milliseconds. */
  readonly at: number
  readonly problems: readonly CheckFinding[]
}

export type Checks = ReturnType<typeof createChecks>

/** Finds what is missing on the platforms before a customer fails to get access. */
export function createChecks(context: SyncContext) {
  const { gate, mayCall, outages, clock, log } = context
  /** Epoch milliseconds; null: only on request. */
  let dueAt: number | null = 0
  let report: CheckReport | null = null
  let known: readonly CheckFinding[] = []

  /** The finding for a platform that must not be called now; null: it may be called. */
  function obstacleTo(name: AdapterName, isAskedFor: boolean): CheckFinding | null {
    const { state, until, reason } = gate.stateOf(name)
    if (state === 'stopped' && !isAskedFor) {
      return { about: name, isFine: false, message: reason?.message ?? '' }
    }
    if (until === null || until <= clock()) return null
    const message = `Calls are paused until ${new Date(until).toISOString()}: ${reason?.message}`
    return { about: name, isFine: false, isUnknown: true, message }
  }

  /** A platform that does not answer is a finding. */
  async function ask(name: AdapterName, isAskedFor: boolean): Promise<readonly CheckFinding[]> {
    const platform = context.platforms.get(name)
    // Every target of the config has a bot.
    if (platform === undefined) return []
    const obstacle = obstacleTo(name, isAskedFor)
    if (obstacle !== null) return [obstacle]
    const all = context.products.flatMap(({ targets }) => targets).filter(({ adapter }) => adapter === name)
    const targets = [...new Map(all.map((target) => [targetKey(target), target])).values()]
    return platform.check(targets).catch((error: unknown) => [failedCheck(name, error)])
  }

  async function check(isAskedFor: boolean): Promise<readonly CheckFinding[]> {
    const findings = (await Promise.all(PLATFORM_NAMES.map((name) => ask(name, isAskedFor)))).flat()
    const failed = findings.filter(({ isFine }) => !isFine)
    const isUnknown = (about: string) =>
      failed.some((one) => one.isUnknown && (about === one.about || about.startsWith(`${one.about}:`)))
    // Earlier findings stay for a platform, or a part of it, that this check could not examine.
    const kept = (report?.problems ?? []).filter(({ about }) => isUnknown(about))
    const problems = [...failed.filter((one) => !one.isUnknown), ...kept]
    for (const { about, message, isUnknown = false } of failed) {
      // What could not be checked is logged once, even if the reason changes meanwhile.
      const isKnown = known.some(
        (one) => one.about === about && (isUnknown ? one.isUnknown : one.message === message),
      )
      if (isKnown) continue
      const fields = { about, reason: message }
      if (isUnknown) log.info(fields, 'could not check roles and groups; checking again later')
      else log.warn(fields, 'cannot manage this role or group: action needed')
    }
    known = [...failed, ...kept]
    report = { at: clock(), problems }
    if (failed.length > 0) dueAt ??= clock() + REPEAT_MS
    return findings
  }

  /** Checks in the background if a check is due and allowed. Cheap, and never throws. */
  function look(): void {
    // Otherwise nothing would notice that a platform is back.
    if (outages.current().some(({ platform }) => isPlatform(platform))) dueAt ??= clock() + REPEAT_MS
    const isLimited = [...context.platforms.keys()].some((name) => obstacleTo(name, true) !== null)
    if (dueAt === null || dueAt > clock() || !mayCall() || isLimited) return
    dueAt = null
    check(false).catch((error: unknown) => {
      // A stop waits for no platform: an answer that comes after it finds the store closed.
      if (mayCall()) log.error({ err: error }, 'could not check the platforms')
    })
  }

  return {
    /** The check that an operator asks for: it runs even while sync is paused or a platform is stopped. */
    check: () => check(true),
    /** Checks again in the background as soon as possible: the last findings may be outdated. */
    renew(): void {
      dueAt = 0
      look()
    },
    look,
    /**
     * The problems of the newest check that somebody has to fix; null: no check has run yet. For a platform that could
     * not be asked, these are its earlier findings.
     */
    report: (): CheckReport | null => report,
  }
}
