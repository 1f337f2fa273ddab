import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { createLogWatch } from '../../src/daemon/log-watch.js'
import type { LogEnd } from '../../src/store/changes.js'

beforeEach(() => {
  vi.useFakeTimers()
  return () => void vi.useRealTimers()
})

function watching() {
  const end = { cursor: 1, isBehind: false, mayGoBack: false }
  const warnings: string[] = []
  const woken = { times: 0 }
  const watch = createLogWatch({
    readEnd: async (): Promise<LogEnd> => ({ ...end }),
    wake: () => {
      woken.times += 1
    },
    log: { warn: (text: string) => void warnings.push(text) },
    elapsed: () => performance.now(),
    later: (run, ms) => setTimeout(run, ms),
  })
  onTestFinished(watch.stop)
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)
  return { end, warnings, woken, pass, ...watch }
}

it('wakes the readers of the change log again, as long as it lacks changes', async () => {
  const { end, woken, pass, note } = watching()
  note()
  await pass(1_000)
  expect(woken.times).toBe(1)
  end.isBehind = true
  note()
  await pass(1_000)
  const { times } = woken
  expect(times).toBeGreaterThan(10)
  end.isBehind = false
  await pass(1_000)
  expect(woken.times).toBe(times + 1)
})

it('wakes them again, ever more seldom, as long as the log may have lacked a change as they looked', async () => {
  const { end, woken, pass, note } = watching()
  end.mayGoBack = true
  note()
  await pass(0)
  expect(woken.times).toBe(1)
  await pass(50)
  expect(woken.times).toBe(2)
  await pass(60_000)
  const { times } = woken
  expect(times).toBeGreaterThan(35)
  expect(times).toBeLessThan(45)
  // What is committed meanwhile is looked for as soon as the first one.
  note()
  await pass(50)
  expect(woken.times).toBe(times + 2)
  end.mayGoBack = false
  await pass(60_000)
  expect(woken.times).toBe(times + 3)
})

it('says once that the log has been held up for a minute, and again after it has moved', async () => {
  const { end, warnings, pass, note } = watching()
  end.isBehind = true
  note()
  await pass(59_000)
  // Under load it lacks something all the time, and goes on.
  end.cursor = 2
  await pass(59_000)
  expect(warnings).toEqual([])
  await pass(120_000)
  expect(warnings).toEqual([expect.stringContaining('held up')])
  end.cursor = 3
  await pass(120_000)
  expect(warnings).toHaveLength(2)
})
