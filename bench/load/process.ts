import { openClient } from './client.js'
import { percentile } from './percentile.js'
import { buildRequests, type Workload } from './requests.js'

/*
 * The load process. Told of an assignment, it builds every request, opens its connections, sends the warm-up, and
 * says that it is ready; told to go, it sends the rest, and says what came of it. Then it takes the next assignment.
 */

export interface Assignment {
  /** Connections take turns. */
  readonly ports: readonly number[]
  readonly workload: Workload
  readonly connections: number
  readonly warmUp: number
  readonly requests: number
}

export interface LoadResult {
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** A benchmark that counts refusals measures something else. */
function assertAllAnswered(statuses: Readonly<Record<number, number>>): void {
  if (Object.keys(statuses).join() === '200') return
  throw new Error(`Not every answer was 200: ${JSON.stringify(statuses)}`)
}

async function prepare({ ports, workload, connections, warmUp, requests }: Assignment) {
  const built = buildRequests(workload, warmUp + requests, Date.now())
  const client = await openClient(ports, connections)
  const warmed = await client.send(built.slice(0, warmUp))
  assertAllAnswered(warmed.statuses)
  return async (): Promise<LoadResult> => {
    const { seconds, latenciesMs, statuses } = await client.send(built.slice(warmUp))
    client.close()
    assertAllAnswered(statuses)
    latenciesMs.sort()
    return { seconds, p50Ms: percentile(latenciesMs, 50), p99Ms: percentile(latenciesMs, 99) }
  }
}

let go: (() => Promise<LoadResult>) | null = null

async function handle(message: Assignment | 'go'): Promise<void> {
  if (message !== 'go') {
    go = await prepare(message)
    process.send?.('ready')
  } else if (go !== null) {
    process.send?.(await go())
    go = null
  }
}

process.on('message', (message: Assignment | 'go') => void handle(message))
process.on('disconnect', () => process.exit())
