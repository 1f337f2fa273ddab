import { fork } from 'node:child_process'
import { ask, stopChild, tieToThisProcess } from '../child.js'
import { cpuSeconds } from '../process-usage.js'
import type { Assignment, LoadResult } from './process.js'

/** One measured run, with what it cost the processor on either side. */
export interface Measurement {
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of a request, in microseconds: in the server, and in the load process. */
  readonly serverMicros: number
  readonly loadMicros: number
}

export interface LoadGenerator {
  /** Warms the server up, then measures it. Throws if any answer was not 200. */
  measure(server: { readonly pid: number }, assignment: Assignment): Promise<Measurement>
  stop(): Promise<void>
}

/** Load comes from a process of its own, so that it takes no turn from a server or from whoever measures. */
export function startLoadGenerator(): LoadGenerator {
  const child = fork(new URL('process.js', import.meta.url))
  tieToThisProcess(child)
  const { pid } = child
  if (pid === undefined) throw new Error('The load process could not be started.')

  return {
    async measure(server, assignment) {
      await ask(child, { ...assignment })
      const before = { server: cpuSeconds(server.pid), load: cpuSeconds(pid) }
      const { seconds, p50Ms, p99Ms } = await ask<LoadResult>(child, 'go')
      const perRequest = (cpu: number): number => (cpu * 1e6) / assignment.requests
      return {
        requestsPerSecond: assignment.requests / seconds,
        p50Ms,
        p99Ms,
        serverMicros: perRequest(cpuSeconds(server.pid) - before.server),
        loadMicros: perRequest(cpuSeconds(pid) - before.load),
      }
    },
    stop: () => stopChild(child),
  }
}
