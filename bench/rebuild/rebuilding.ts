import { setTimeout as wait } from 'node:timers/promises'
import type { RunningServer } from '../servers/running-server.js'
import { API_KEY } from '../store/daemon-folder.js'

const ASK_EVERY_MS = 50

/** What a daemon is asked to do: compute everything again and write it, or only compare. */
export type Recompute = '/rebuild' | '/rebuild/verification'

interface RebuildAnswer {
  readonly state: 'none' | 'running' | 'done' | 'failed'
  readonly gains?: number
  readonly losses?: number
  readonly otherwise?: number
  readonly differences?: { readonly count: number }
}

async function askRebuild(
  { port }: RunningServer,
  method: 'POST' | 'GET',
  path: Recompute,
): Promise<RebuildAnswer> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' },
    ...(method === 'POST' && path !== '/rebuild' && { body: '{}' }),
  })
  if (!response.ok) throw new Error(`The daemon does not rebuild: ${await response.text()}`)
  return (await response.json()) as RebuildAnswer
}

/** Has a daemon rebuild its state. Throws if anything stood otherwise than the events say. */
export async function rebuildOnce(server: RunningServer, path: Recompute = '/rebuild'): Promise<void> {
  let answer = await askRebuild(server, 'POST', path)
  while (answer.state === 'running') {
    await wait(ASK_EVERY_MS)
    answer = await askRebuild(server, 'GET', path)
  }
  const { state, gains, losses, otherwise, differences = { count: 0 } } = answer
  const changes = [gains, losses, otherwise, differences.count]
  if (state !== 'done' || changes.some((count) => count !== 0)) {
    throw new Error(`It should have found nothing to change: ${JSON.stringify(answer)}`)
  }
}

/** One rebuild after the other, from before the work begins until it ends; then the last one is awaited, too. */
export async function whileRebuilding<T>(
  server: RunningServer,
  path: Recompute,
  onRebuilt: (seconds: number) => void,
  work: () => Promise<T>,
): Promise<T> {
  let isOver = false
  const rebuilding = (async () => {
    while (!isOver) {
      const startedAt = performance.now()
      await rebuildOnce(server, path)
      if (!isOver) onRebuilt((performance.now() - startedAt) / 1000)
    }
  })()
  // Whichever fails first; a rebuild that fails is no reason to go on.
  const [result] = await Promise.all([
    work().finally(() => {
      isOver = true
    }),
    rebuilding,
  ])
  return result
}
