import { setImmediate as immediate } from 'node:timers/promises'
import { getTasks } from 'node-cron'
import { vi } from 'vitest'

/**
 * Turns the clock of a test with one schedule. Waits first until that has begun: its library is loaded then, and nothing
 * is being worked out. Timers do not show it, since what an earlier test has left may set some too.
 */
export async function turnBy(ms: number): Promise<void> {
  const stateOfTasks = () => [...getTasks().values()].map((task) => task.getStatus())
  while (!['idle', 'running'].includes(stateOfTasks().join())) await immediate()
  await immediate()
  await vi.advanceTimersByTimeAsync(ms)
}
