import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLogWatch } from '../../src/daemon/log-watch.js'
import type { LogEnd } from '../../src/store/changes.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function watching() {
  const end = { cursor: 1, isBehind: false }
  const warnings: string[] = []
  const woken = { times: 0 }
  const watch = createLogWatch({
    readEnd: async (): Promise<LogEnd> => ({ ...end }),
    wake: () => {
      woken.times += 1
    },
    log: { warn: (text: string) => void warnings.push(text) },
  })
  return { end, warnings, woken, ...watch }
}

it('wakes the readers of the change log again, as long as it lacks changes', async () => {
  const { end, woken, note } = watching()
  note()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(woken.times).toBe(1)
  end.isBehind = true
  note()
  await vi.advanceTimersByTimeAsync(1_000)
  const { times } = woken
  expect(times).toBeGreaterThan(10)
  end.isBehind = false
  await vi.advanceTimersByTimeAsync(1_000)
  expect(woken.times).toBe(times + 1)
})

it('says once that the log has been held up for a minute, and again after it has moved', async () => {
  const { end, warnings, note } = watching()
  end.isBehind = true
  note()
  await vi.advanceTimersByTimeAsync(59_000)
  // Under load it lacks something all the time, and goes on.
  end.cursor = 2
  await vi.advanceTimersByTimeAsync(59_000)
  expect(warnings).toEqual([])
  await vi.advanceTimersByTimeAsync(120_000)
  expect(warnings).toEqual([expect.stringContaining('held up')])
  end.cursor = 3
  await vi.advanceTimersByTimeAsync(120_000)
  expect(warnings).toHaveLength(2)
})
