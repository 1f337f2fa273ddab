import { fork } from 'node:child_process'
import { ask, stopChild, tieToThisProcess } from '../child.js'
import { cpuSeconds, cpuSecondsOfAll } from '../process-usage.js'
import type { RunningServer } from '../servers/running-server.js'
import type { Assignment, LoadResult } from './process.js'

/** One measured run, with what it cost the processor on either side. */
export interface Measurement {
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of a request, in microseconds: in the server, in that of its database, and in the load process. */
  readonly serverMicros: number
  readonly databaseMicros: number
  readonly loadMicros: number
}

export interface LoadGenerator {
  /** Warms the server up, then measures it. Throws if any answer was not 200. */
  measure(server: RunningServer, assignment: Omit<Assignment, 'ports'>): Promise<Measurement>
  stop(): Promise<void>
}

/** Load comes from a process of its own, so that it takes no turn from a server or from whoever measures. */
export function startLoadGenerator(): LoadGenerator {
  const child = fork(new URL('process.ts', import.meta.url))
  tieToThisProcess(child)
  const { pid } = child
  if (pid === undefined) throw new Error('The load process could not be started.')

  return {
    async measure(server, assignment) {
      const instances = [server, ...(server.beside ?? [])]
      const used = () => ({
        server: instances.reduce((sum, instance) => sum + cpuSeconds(instance.pid), 0),
        database: server.databasePid === undefined ? 0 : cpuSecondsOfAll(server.databasePid),
        load: cpuSeconds(pid),
      })
      await ask(child, { ...assignment, ports: instances.map(({ port }) => port) })
      const before = used()
      const { seconds, p50Ms, p99Ms } = await ask<LoadResult>(child, 'go')
      const after = used()
      const perRequest = (of: keyof typeof after): number =>
        ((after[of] - before[of]) * 1e6) / assignment.requests
      return {
        requestsPerSecond: assignment.requests / seconds,
        p50Ms,
        p99Ms,
        serverMicros: perRequest('server'),
        databaseMicros: perRequest('database'),
        loadMicros: perRequest('load'),
      }
    },
    stop: () => stopChild(child),
  }
}
