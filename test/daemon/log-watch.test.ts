import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createLogWatch } from '../../src/daemon/log-watch.js'
import type { LogEnd } from '../../src/store/changes.js'

function watching() {
  const end = { cursor: 1, isBehind: false }
  const warnings: string[] = []
  const woken = { times: 0 }
  const waiting: { readonly run: () => void; readonly at: number }[] = []
  let now = 0
  const watch = createLogWatch({
    readEnd: async (): Promise<LogEnd> => ({ ...end }),
    wake: () => {
      woken.times += 1
    },
    log: { warn: (text: string) => void warnings.push(text) },
    elapsed: () => now,
    later(run, ms) {
      waiting.push({ run, at: now + ms })
      return undefined as never
    },
  })

  /** Turns the clock, and has everything happen that is due meanwhile. */
  async function pass(ms: number): Promise<void> {
    const until = now + ms
    await nextTurn()
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (next.at > until) {
        waiting.unshift(next)
        break
      }
      now = next.at
      next.run()
      await nextTurn()
    }
    now = until
  }
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
