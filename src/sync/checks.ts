import type { Logger } from 'pino'
import { checkPlatforms } from './check-platforms.js'
import type { Gate } from './gate.js'
import type { CheckFinding, Platform } from './platform.js'
import type { CheckReport, SyncedProduct } from './sync.js'
import type { AdapterName } from './target.js'

export interface ChecksDeps {
  /** Asked each time, since a reload may change them. */
  readonly products: () => readonly SyncedProduct[]
  readonly platforms: () => ReadonlyMap<AdapterName, Platform>
  readonly gate: Gate
  /** Whether calls may be begun by themselves. */
  readonly mayCall: () => boolean
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Finds what is missing on the platforms before it keeps anybody out. */
export interface Checks {
  /** As an operator asks for it: while sync is paused, and where a platform was stopped, too. */
  check(): Promise<readonly CheckFinding[]>
  /** What the newest check found may be otherwise by now: checks again in the background, as soon as may be. */
  renew(): void
  /** Checks in the background, where that is due and may be. Cheap, and never throws. */
  look(): void
  /** What the newest check found; null: there was none yet. */
  report(): CheckReport | null
}

export function createChecks({ products, platforms, gate, mayCall, clock, log }: ChecksDeps): Checks {
  let isDue = true
  let report: CheckReport | null = null

  const limitOf = (name: AdapterName): string | null => {
    const state = gate.stateOf(name)
    if (state.kind !== 'limited' || state.until <= clock()) return null
    return `No call is made before ${new Date(state.until).toISOString()}: ${state.message}`
  }
  const stopOf = (name: AdapterName): string | null => {
    const state = gate.stateOf(name)
    return state.kind === 'stopped' ? state.message : null
  }

  async function check(obstacle: (name: AdapterName) => string | null): Promise<readonly CheckFinding[]> {
    const findings = await checkPlatforms(products(), platforms(), obstacle)
    const known = report?.problems ?? []
    const problems = findings.filter(({ isFine }) => !isFine)
    for (const { about, message } of problems) {
      if (known.some((one) => one.about === about && one.message === message)) continue
      log.warn({ about, reason: message }, 'a role or group can not follow access: somebody has to act')
    }
    report = { at: clock(), problems }
    return findings
  }

  function look(): void {
    const isLimited = [...platforms().keys()].some((name) => limitOf(name) !== null)
    if (!isDue || !mayCall() || isLimited) return
    isDue = false
    check(stopOf).catch((error: unknown) => log.error({ err: error }, 'the platforms could not be checked'))
  }

  return {
    check: () => check(limitOf),
    renew() {
      isDue = true
      look()
    },
    look,
    report: () => report,
  }
}
