import type { LineOutcome } from '../history/import.js'
import type { Environment } from '../provider/event.js'
import type { DaemonOptions } from './command.js'

export interface ImportOptions extends DaemonOptions {
  readonly environment?: Environment
  readonly withManual?: true
  readonly dryRun?: true
}

/** Where lines go: a daemon, or the store of none. */
export interface ImportTarget {
  /** What became of each, in their order. */
  importLines(lines: readonly string[]): Promise<readonly LineOutcome[]>
  close(): Promise<void>
}
