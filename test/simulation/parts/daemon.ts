/* What a world knows of its daemon, or of the two that share a database. */

import type { Chance } from '../machine/chance.js'
import type { Fault } from '../story.js'

export interface LogLine {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

export interface DaemonOptions {
  /** Where its folders go. */
  readonly folder: string
  /** Read at each start and reload. */
  readonly config: () => object
  readonly onLog: (line: LogLine) => void
  /** Hears why it could not start or stop. */
  readonly onFailure: (error: unknown) => void
}

export interface Daemon {
  /** What can happen to it. Each resolves once it is over, if that comes by itself. */
  readonly faults: Readonly<Partial<Record<Fault, (chance: Chance) => Promise<void>>>>
  /** When its clock was set, in milliseconds since the world began. */
  readonly clockSetAt: readonly number[]
  isClockRight(): boolean
  /** Stops it in order, and starts it again. */
  restart(): Promise<void>
  /** Rejects if the config is refused. */
  reload(): Promise<void>
  /** Ends all that is wrong with it. Resolves once it serves. */
  heal(): Promise<void>
  /** All that it keeps beyond its end, part by part, but for bytes that hold nothing any more. */
  stored(): AsyncIterable<Buffer>
  /** For good. */
  end(): Promise<void>
}
