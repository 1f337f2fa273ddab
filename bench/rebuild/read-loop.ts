import { fork } from 'node:child_process'
import { nextMessage, tieToThisProcess } from '../child.js'
import type { Effort } from './effort.js'

/** Reads and parses every event, and nothing else: less than that no rebuild can do. */
export function measureReading(databaseFile: string): Promise<Effort> {
  const child = fork(new URL('read-all.ts', import.meta.url), [databaseFile])
  tieToThisProcess(child)
  return nextMessage<Effort>(child)
}
