/*
 * The processes of the simulated world. All run in this one; each piece of work belongs to the one that began it, so that
 * a killed one does nothing any more.
 */

import { AsyncLocalStorage } from 'node:async_hooks'

export interface SimulatedProcess {
  readonly name: string
  isDead: boolean
  /** Called as it dies: what it holds open is cut. */
  readonly onDeath: Set<() => void>
}

/** Thrown where a dead process would go on. */
export class KilledError extends Error {
  constructor(name: string) {
    super(`${name} was killed`)
    this.name = 'KilledError'
  }
}

/** Whether something failed because its process is dead: then nobody hears of it. */
export function isOfKilled(error: unknown): boolean {
  return error instanceof Error && (error instanceof KilledError || isOfKilled(error.cause))
}

const running = new AsyncLocalStorage<SimulatedProcess | null>()

export function createProcess(name: string): SimulatedProcess {
  return { name, isDead: false, onDeath: new Set() }
}

/** The one whose work this is; null: the world's own. */
export const currentProcess = (): SimulatedProcess | null => running.getStore() ?? null

/** Does the work of a process, unless it is dead. */
export function runAs<Answer>(owner: SimulatedProcess | null, work: () => Answer): Answer | undefined {
  return owner?.isDead ? undefined : running.run(owner, work)
}

/** Ends it without a word: no timer of it fires any more, no message leaves it, and no statement runs. */
export function kill(victim: SimulatedProcess): void {
  if (victim.isDead) return
  victim.isDead = true
  for (const cut of victim.onDeath) cut()
  victim.onDeath.clear()
}
