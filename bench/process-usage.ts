import { existsSync, readFileSync } from 'node:fs'

/* What Linux tells of another process; no other system tells it this way. */

const TICKS_PER_SECOND = 100
/** Counted from the state, the first field after the name, which is in brackets and may hold anything. */
const USER_TICKS_AT = 11
const SYSTEM_TICKS_AT = 12
/** Of children that have ended. */
const ENDED_USER_TICKS_AT = 13
const ENDED_SYSTEM_TICKS_AT = 14

/** Of an ended process, not all is told any more, even while its parent has not yet heard of its end. */
export function hasEnded(pid: number): boolean {
  return !existsSync(`/proc/${pid}`) || /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
}

export interface MemoryUse {
  readonly residentMb: number
  /** The most it ever was. */
  readonly peakMb: number
}

/** Processor time of all threads so far, in the kernel too; true to a hundredth of a second. */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid)
  return (Number(fields[USER_TICKS_AT]) + Number(fields[SYSTEM_TICKS_AT])) / TICKS_PER_SECOND
}

/** That of a process and of all that it started, whether they run or have ended. */
export function cpuSecondsOfAll(pid: number): number {
  const fields = statFields(pid)
  const ended = Number(fields[ENDED_USER_TICKS_AT]) + Number(fields[ENDED_SYSTEM_TICKS_AT])
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean)
  return children.reduce(
    (sum, child) => sum + cpuSecondsIfRunning(Number(child)),
    cpuSeconds(pid) + ended / TICKS_PER_SECOND,
  )
}

/** None of one that ends at this moment. */
function cpuSecondsIfRunning(pid: number): number {
  try {
    return cpuSeconds(pid)
  } catch (error) {
    if (hasEnded(pid)) return 0
    throw error
  }
}

/** From the state on. */
function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

export function memoryUse(pid: number): MemoryUse {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const megabytes = (name: string): number => {
    const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]
    if (kilobytes === undefined) throw new Error(`The system does not tell ${name}.`)
    return Number(kilobytes) / 1024
  }
  return { residentMb: megabytes('VmRSS'), peakMb: megabytes('VmHWM') }
}

/** What a process had the disk itself read so far, in mebibytes: not what the system had in memory already. */
export function readFromDiskMb(pid: number): number {
  const [, bytes] = /^read_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? []
  return Number(bytes) / 1024 ** 2
}
