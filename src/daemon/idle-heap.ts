import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const LOOK_EVERY_MS = 5_000
/** A collection takes some 50 ms (20 MB in use): none while requests may be waiting. */
const IDLE_BELOW = 0.02
/** In bytes. Less is not worth another one. */
const WORTH_COLLECTING = 6 * 1024 * 1024

/**
 * Collects this thread's heap when it is idle: V8 does so only as a heap grows, and would keep all that a start, or the
 * last load, has left: 20 MB after a start.
 */
export function collectWhenIdle(): void {
  // Node has no other way to collect that needs no flag at the start.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (how: object) => void
  let seen = performance.eventLoopUtilization()
  let kept = 0
  setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, seen)
    seen = now
    if (utilization > IDLE_BELOW || getHeapStatistics().total_heap_size < kept + WORTH_COLLECTING) return
    // It also returns the pages to the system.
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    kept = getHeapStatistics().total_heap_size
  }, LOOK_EVERY_MS).unref()
}
