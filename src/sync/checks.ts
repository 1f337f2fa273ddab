import type { SyncContext } from './context.js'
import { type CheckFinding, failedCheck } from './platform.js'
import { ADAPTER_NAMES, type AdapterName, targetKey } from './target.js'

/** What is missing may be there by then, and a platform that did not answer may answer. */
const REPEAT_MS = 5 * 60_000

/** What a check found that somebody has to see to. */
export interface CheckReport {
  /** Epoch milliseconds. */
  readonly at: number
  readonly problems: readonly CheckFinding[]
}

export type Checks = ReturnType<typeof createChecks>

/** Finds what is missing on the platforms before it keeps anybody out. */
export function createChecks(context: SyncContext) {
  const { gate, mayCall, outages, clock, log } = context
  /** Epoch milliseconds; null: not before it is asked for. */
  let dueAt: number | null = 0
  let report: CheckReport | null = null
  let known: readonly CheckFinding[] = []

  /** What is found without asking a platform that is not to be asked now; null: it may be. */
  function obstacleTo(name: AdapterName, isAskedFor: boolean): CheckFinding | null {
    const { state, until, reason } = gate.stateOf(name)
    if (state === 'stopped' && !isAskedFor) {
      return { about: name, isFine: false, message: reason?.message ?? '' }
    }
    if (until === null || until <= clock()) return null
    const message = `No call is made before ${new Date(until).toISOString()}: ${reason?.message}`
    return { about: name, isFine: false, isUnknown: true, message }
  }

  /** A platform that does not answer is a finding. */
  async function ask(name: AdapterName, isAskedFor: boolean): Promise<readonly CheckFinding[]> {
    const all = context.products.flatMap(({ targets }) => targets).filter(({ adapter }) => adapter === name)
    const targets = [...new Map(all.map((target) => [targetKey(target), target])).values()]
    const platform = context.platforms.get(name)
    if (platform === undefined) {
      const message = `There is no bot for it: add sync.${name} to the config.`
      return targets.map((target) => ({ about: targetKey(target), isFine: false, message }))
    }
    const obstacle = obstacleTo(name, isAskedFor)
    if (obstacle !== null) return [obstacle]
    return platform.check(targets).catch((error: unknown) => [failedCheck(name, error)])
  }

  async function check(isAskedFor: boolean): Promise<readonly CheckFinding[]> {
    const findings = (await Promise.all(ADAPTER_NAMES.map((name) => ask(name, isAskedFor)))).flat()
    const notFine = findings.filter(({ isFine }) => !isFine)
    const unknown = notFine.filter(({ isUnknown }) => isUnknown === true)
    const found = notFine.filter(({ isUnknown }) => isUnknown !== true)
    // What was found before about that of which nothing is known now: a platform as a whole, or a part of it.
    const isUnknown = (about: string) =>
      unknown.some((one) => about === one.about || about.startsWith(`${one.about}:`))
    const problems = [...found, ...(report?.problems ?? []).filter(({ about }) => isUnknown(about))]

    const isNew = ({ about, message }: CheckFinding) =>
      !known.some((one) => one.about === about && one.message === message)
    for (const { about, message } of found.filter(isNew)) {
      log.warn({ about, reason: message }, 'cannot manage this role or group: action needed')
    }
    // However often the reason changes meanwhile.
    const isNewlyUnknown = ({ about }: CheckFinding) =>
      !known.some((one) => one.about === about && one.isUnknown === true)
    for (const { about, message } of unknown.filter(isNewlyUnknown)) {
      log.info({ about, reason: message }, 'could not check roles and groups; checking again later')
    }
    known = [...problems, ...unknown]
    report = { at: clock(), problems }
    if (notFine.length > 0) dueAt ??= clock() + REPEAT_MS
    return findings
  }

  /** Checks in the background, where that is due and may be. Cheap, and never throws. */
  function look(): void {
    // To learn that a platform is back, though nothing else may call it.
    if (outages.current().some(({ platform }) => platform !== 'webhook')) dueAt ??= clock() + REPEAT_MS
    const isLimited = [...context.platforms.keys()].some((name) => obstacleTo(name, true) !== null)
    if (dueAt === null || dueAt > clock() || !mayCall() || isLimited) return
    dueAt = null
    check(false).catch((error: unknown) => log.error({ err: error }, 'the platforms could not be checked'))
  }

  return {
    /** As an operator asks for it: while sync is paused, and where a platform was stopped, too. */
    check: () => check(true),
    /** What the newest check found may have changed: checks again in the background, as soon as may be. */
    renew(): void {
      dueAt = 0
      look()
    },
    look,
    /**
     * What somebody has to see to, by the newest check; null: there was none yet. Where a platform could not be asked,
     * that is what was found before.
     */
    report: (): CheckReport | null => report,
  }
}
