import { setImmediate as turn } from 'node:timers/promises'

/** How work in many transactions reports its progress, and is stopped between two of them. */
export interface WorkOptions {
  /** In any unit; only the ratio counts. */
  readonly onProgress?: (reached: number, total: number) => void
  /** Finished steps stay, and the next work of the same kind continues from there. */
  readonly isStopping?: () => boolean | Promise<boolean>
}

/**
 * The callback gives other work its turn. The work itself can't, by a turn of the event loop: in a busy thread such a
 * turn comes after hundreds of messages.
 */
export async function neverStopping(): Promise<boolean> {
  await turn()
  return false
}
