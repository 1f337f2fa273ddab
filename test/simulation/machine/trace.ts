/* What happened, in order: the same seed gives the same trace, byte for byte. */

import { createHash, type Hash } from 'node:crypto'
import { elapsed } from './time.js'

let hash: Hash = createHash('sha256')
let heard: ((line: string) => void) | null = null
let count = 0

/** @param listener hears each line, besides */
export function restartTrace(listener: ((line: string) => void) | null): void {
  hash = createHash('sha256')
  heard = listener
  count = 0
}

export function trace(what: string): void {
  const line = `${elapsed()} ${what}`
  count += 1
  hash.update(line).update('\n')
  heard?.(line)
}

export const traceSoFar = (): { readonly lines: number; readonly hash: string } => ({
  lines: count,
  hash: hash.copy().digest('hex').slice(0, 16),
})
