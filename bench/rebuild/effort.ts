import { cpuSeconds, memoryUse, readFromDiskMb } from '../process-usage.js'

/** What work took. */
export interface Effort {
  readonly seconds: number
  /** Processor time of all threads, in the kernel too. */
  readonly cpuSeconds: number
  /** Read from the disk itself, since the system had it not in memory. */
  readonly diskMb: number
  /** The most that its process ever had in memory. */
  readonly peakMb: number
}

/** Does what a process is asked to, and tells what that took; the process is still there afterwards. */
export async function effortOf(pid: number, work: () => void | Promise<void>): Promise<Effort> {
  const before = cpuSeconds(pid)
  const readBefore = readFromDiskMb(pid)
  const startedAt = performance.now()
  await work()
  return {
    seconds: (performance.now() - startedAt) / 1000,
    cpuSeconds: cpuSeconds(pid) - before,
    diskMb: readFromDiskMb(pid) - readBefore,
    peakMb: memoryUse(pid).peakMb,
  }
}
