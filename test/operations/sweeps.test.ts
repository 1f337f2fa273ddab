import { Writable } from 'node:stream'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createLogger } from '../../src/log.js'
import { startSweeps } from '../../src/operations/schedule.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const HOUR_MS = 3_600_000

/** Sweeps every hour, asked at noon, the newest one having begun at `sweptAt`. */
function scheduled(sweptAt: number | null, sweep: () => Promise<void>) {
  const lines: string[] = []
  const write = (chunk: unknown, _encoding: string, done: () => void): void => {
    lines.push(String(chunk))
    done()
  }
  const schedule = startSweeps({
    sweep,
    sweptAt: () => Promise.resolve(sweptAt),
    everyMs: () => HOUR_MS,
    clock: () => NOON,
    log: createLogger('info', new Writable({ write })),
  })
  onTestFinished(() => schedule.stop())
  return { stop: schedule.stop, logged: () => lines.join('') }
}

it.each([
  ['there was none', null, 1],
  ['the newest is old enough', NOON - HOUR_MS, 1],
  ['the newest is not old enough', NOON - HOUR_MS + 1, 0],
  ['the newest is from the future', NOON + 1, 1],
])('at the start, where %s', async (_when, sweptAt, times) => {
  const sweep = vi.fn(() => Promise.resolve())
  await scheduled(sweptAt, sweep).stop()
  expect(sweep).toHaveBeenCalledTimes(times)
})

it('one that fails is told in the log, and the next one comes', async () => {
  const { stop, logged } = scheduled(null, () => Promise.reject(new Error('The store can not be read.')))
  await stop()
  expect(logged()).toContain('could not compare with the members')
})
