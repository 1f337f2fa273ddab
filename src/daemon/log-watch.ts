/** How soon readers look again for changes that they could not see yet. */
const AGAIN_MS = 50

export interface LogWatchDeps {
  /** Whether changes are committed that readers don't see yet. */
  readonly isBehind: () => Promise<boolean>
  /** Has readers of the change log look at it. */
  readonly wake: () => void
}

/**
 * Wakes the readers of a change log that ends before the oldest transaction under way: again, as long as it lacks
 * committed changes. A transaction that ends without a commit tells nobody.
 */
export function createLogWatch({ isBehind, wake }: LogWatchDeps) {
  let isLooking = false
  let isAsked = false
  let isStopped = false
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    isLooking = true
    while (isAsked && !isStopped) {
      isAsked = false
      // Before they look: what is missing then may be there when they do.
      const wasBehind = await isBehind().catch(() => false)
      wake()
      if (wasBehind && !isStopped) timer ??= setTimeout(again, AGAIN_MS)
    }
    isLooking = false
  }

  function again(): void {
    timer = undefined
    note()
  }

  function note(): void {
    isAsked = true
    if (!isLooking) void look()
  }

  return {
    /** Something was committed, here or by another process. Cheap, and never throws. */
    note,
    async stop(): Promise<void> {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
