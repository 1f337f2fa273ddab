import { setImmediate as turn } from 'node:timers/promises'

/** How work in many transactions tells how far it is, and is stopped between two of them. */
export interface WorkOptions {
  /** In whatever the work counts; only the ratio tells. */
  readonly onProgress?: (reached: number, total: number) => void
  /** What has been done by then stands, and the next work of the same kind goes on from there. */
  readonly isStopping?: () => boolean | Promise<boolean>
}

/**
 * Whoever is asked lets others have their turn first. Not the work itself, by a turn of the event loop: in a thread
 * to which messages keep coming, such a turn comes after hundreds of them.
 */
export async function neverStopping(): Promise<boolean> {
  await turn()
  return false
}
