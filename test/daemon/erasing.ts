import { existsSync, readFileSync } from 'node:fs'
import { type Answered, call, type RunningDaemon } from './running-daemon.js'

export function erase(daemon: RunningDaemon, customerId: string, body?: unknown): Promise<Answered> {
  return call(daemon, 'DELETE', `/customers/${customerId}`, body)
}

/** Which of these words any byte of the database or its log holds. */
export function foundIn(databaseFile: string, words: readonly string[]): readonly string[] {
  const files = [databaseFile, `${databaseFile}-wal`].filter((file) => existsSync(file))
  const bytes = files.map((file) => readFileSync(file))
  return words.filter((word) => bytes.some((one) => one.includes(word)))
}
