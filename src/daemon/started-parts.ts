/**
 * In this order, since what is named later still serves what is named before: whoever asked for an erasure is answered
 * first, finished or not, and the store is closed last.
 */
const STOP_ORDER = [
  'privacySchedule',
  'listeners',
  'queue',
  'schedule',
  'following',
  'backups',
  'recomputing',
  'store',
] as const

export type Part = (typeof STOP_ORDER)[number]

/** What a daemon has started so far, and how each of it is stopped. */
export interface StartedParts {
  /** To be called as soon as the part is started, so that a start that fails after it leaves nothing open. */
  add(part: Part, stop: () => Promise<void>): void
  /**
   * Stops all that was added, whatever one of them says to it. May be called twice.
   * @throws what the first of them threw that failed, once all were stopped
   */
  stop(): Promise<void>
}

export function createStartedParts(): StartedParts {
  const stops = new Map<Part, () => Promise<void>>()
  let stopped: Promise<void> | null = null

  async function stopAll(): Promise<void> {
    const failures: unknown[] = []
    for (const part of STOP_ORDER) {
      try {
        await stops.get(part)?.()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  return {
    add: (part, stop) => void stops.set(part, stop),
    stop() {
      stopped ??= stopAll()
      return stopped
    },
  }
}
