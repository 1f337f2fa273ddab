import type { Logger } from 'pino'
import type { Gate } from './limits.js'
import { type CheckFinding, failedCheck, type Platform } from './platform.js'
import type { CheckReport } from './sync.js'
import { ADAPTER_NAMES, type AdapterName, type SyncedProduct, targetKey } from './target.js'

/** What is missing may be there by then, and a platform that did not answer may answer. */
const REPEAT_MS = 5 * 60_000

export interface ChecksDeps {
  /** Asked each time, since a reload may change them. */
  readonly products: () => readonly SyncedProduct[]
  readonly platforms: () => ReadonlyMap<AdapterName, Platform>
  readonly gate: Gate
  /** Whether calls may be begun by themselves. */
  readonly mayCall: () => boolean
  /** Whether a platform has failed, and was not called since for so long that a check is to find out. */
  readonly isProbeDue: () => boolean
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Finds what is missing on the platforms before it keeps anybody out. */
export interface Checks {
  /** As an operator asks for it: while sync is paused, and where a platform was stopped, too. */
  check(): Promise<readonly CheckFinding[]>
  /** What the newest check found may have changed: checks again in the background, as soon as may be. */
  renew(): void
  /** Checks in the background, where that is due and may be. Cheap, and never throws. */
  look(): void
  /**
   * What somebody has to see to, by the newest check; null: there was none yet. Where a platform could not be asked,
   * that is what was found before.
   */
  report(): CheckReport | null
}

export function createChecks({
  products,
  platforms,
  gate,
  mayCall,
  isProbeDue,
  clock,
  log,
}: ChecksDeps): Checks {
  /** Epoch milliseconds; null: not before it is asked for. */
  let dueAt: number | null = 0
  let report: CheckReport | null = null
  let known: readonly CheckFinding[] = []
  let isUnderWay = false

  const limitOf = (name: AdapterName): CheckFinding | null => {
    const state = gate.stateOf(name)
    if (state.kind !== 'limited' || state.until <= clock()) return null
    const message = `No call is made before ${new Date(state.until).toISOString()}: ${state.message}`
    return { about: name, isFine: false, isUnknown: true, message }
  }
  const stopOf = (name: AdapterName): CheckFinding | null => {
    const state = gate.stateOf(name)
    return state.kind === 'stopped' ? { about: name, isFine: false, message: state.message } : null
  }

  async function check(
    obstacle: (name: AdapterName) => CheckFinding | null,
  ): Promise<readonly CheckFinding[]> {
    const findings = await checkPlatforms(products(), platforms(), obstacle)
    const notFine = findings.filter(({ isFine }) => !isFine)
    const unknown = notFine.filter(({ isUnknown }) => isUnknown === true)
    const found = notFine.filter(({ isUnknown }) => isUnknown !== true)
    const problems = [...found, ...stillKnown(report?.problems ?? [], unknown)]

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

  function look(): void {
    const isLimited = [...platforms().keys()].some((name) => limitOf(name) !== null)
    const isDue = (dueAt !== null && dueAt <= clock()) || (isProbeDue() && !isUnderWay)
    if (!isDue || !mayCall() || isLimited) return
    dueAt = null
    isUnderWay = true
    check(stopOf)
      .catch((error: unknown) => log.error({ err: error }, 'the platforms could not be checked'))
      .finally(() => {
        isUnderWay = false
      })
  }

  return {
    check: () => check(limitOf),
    renew() {
      dueAt = 0
      look()
    },
    look,
    report: () => report,
  }
}

/** What was found before about that of which nothing is known now. All that concerns a platform begins with its name. */
function stillKnown(
  problems: readonly CheckFinding[],
  unknown: readonly CheckFinding[],
): readonly CheckFinding[] {
  const names = ADAPTER_NAMES.filter((name) => unknown.some(({ about }) => about === name))
  return problems.filter(
    ({ about }) => unknown.some((one) => one.about === about) || names.some((name) => about.startsWith(name)),
  )
}

/**
 * Asks each platform about the configured targets. A platform that does not answer is a finding.
 * @param obstacle what is found without asking a platform, which is not to be asked now; null: it may be
 */
async function checkPlatforms(
  products: readonly SyncedProduct[],
  platforms: ReadonlyMap<AdapterName, Platform>,
  obstacle: (name: AdapterName) => CheckFinding | null,
): Promise<readonly CheckFinding[]> {
  const configured = new Map(
    products.flatMap(({ targets }) => targets).map((target) => [targetKey(target), target]),
  )
  const findings = ADAPTER_NAMES.map(async (name): Promise<readonly CheckFinding[]> => {
    const targets = [...configured.values()].filter(({ adapter }) => adapter === name)
    const platform = platforms.get(name)
    if (platform === undefined) {
      return targets.map((target) => ({
        about: targetKey(target),
        isFine: false,
        message: `There is no bot for it: add sync.${name} to the config.`,
      }))
    }
    const found = obstacle(name)
    if (found !== null) return [found]
    try {
      return await platform.check(targets)
    } catch (error) {
      return [failedCheck(name, error)]
    }
  })
  return (await Promise.all(findings)).flat()
}
