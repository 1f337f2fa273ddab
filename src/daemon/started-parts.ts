/**
 * The order of stopping: later parts still serve earlier ones. So a request for an erasure is answered first, finished
 * or not, and the store is closed last; after that only traces of it all are sent. Streams never end by themselves, and a
 * receiver may leave a test message unanswered, so they end before the listeners wait. What backfills report goes through
 * the queue.
 */
const STOP_ORDER = [
  'privacySchedule',
  'changeStream',
  'webhookTests',
  'listeners',
  'backfillSchedules',
  'hydrating',
  'backfills',
  'queue',
  'keyUses',
  'schedule',
  'following',
  'turns',
  'takingOver',
  'backups',
  'recomputing',
  'logWatch',
  'store',
  'tracing',
] as const

export type Part = (typeof STOP_ORDER)[number]

export type StartedParts = ReturnType<typeof createStartedParts>

/** The started parts of a daemon, and how each one stops. */
export function createStartedParts() {
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
    /** Call it as soon as a part has started, so that a start that fails later leaves nothing open. */
    add: (part: Part, stop: () => Promise<void>) => void stops.set(part, stop),
    /**
     * Stops all parts, even if some of them fail. May be called twice.
     * @throws the first failure, once all parts have stopped
     */
    stop(): Promise<void> {
      stopped ??= stopAll()
      return stopped
    },
  }
}
