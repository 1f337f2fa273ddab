import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createLogger } from '../../src/log.js'
import { type CronDeps, createSchedule, isOverdue } from '../../src/operations/cron.js'
import { turnBy } from './turn-by.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** A Sunday. */
const NOON = Date.UTC(2026, 2, 1, 12)
const NIGHTLY = { expression: '0 3 * * *', timezone: 'UTC' }
const THREE = NOON + 15 * HOUR_MS

const times = (expression: string, timezone = 'UTC') => ({ expression, timezone })

describe('whether something was due', () => {
  it.each<[string, ReturnType<typeof times>, string, string, boolean]>([
    ['its time came', NIGHTLY, '2026-03-01T02:59:59Z', '2026-03-01T03:00:00Z', true],
    ['its time is to come', NIGHTLY, '2026-03-01T03:00:00Z', '2026-03-02T02:59:59Z', false],
    ['it ran at its time', NIGHTLY, '2026-03-01T03:00:00.005Z', '2026-03-01T23:00:00Z', false],
    ['many of its times came', NIGHTLY, '2026-01-01T00:00:00Z', '2026-03-01T00:00:00Z', true],
    [
      'it is due monthly, and the day came',
      times('30 4 1 * *'),
      '2026-02-02T00:00:00Z',
      '2026-03-01T04:30:00Z',
      true,
    ],
    [
      'it is due monthly, and the day is to come',
      times('30 4 1 * *'),
      '2026-02-02T00:00:00Z',
      '2026-03-01T04:29:59Z',
      false,
    ],
    [
      'it is due yearly, and the day is to come',
      times('0 0 1 3 *'),
      '2025-03-01T00:00:01Z',
      '2026-02-28T23:59:59Z',
      false,
    ],
    [
      'a day must be of both kinds',
      times('0 0 1 * mon'),
      '2026-02-20T00:00:00Z',
      '2026-03-20T00:00:00Z',
      false,
    ],
    [
      'the zone is ahead',
      times('0 3 * * *', 'Asia/Kathmandu'),
      '2026-03-01T21:14:00Z',
      '2026-03-01T21:15:00Z',
      true,
    ],
    [
      'the zone is behind',
      times('0 3 * * *', 'America/New_York'),
      '2026-03-01T03:00:00Z',
      '2026-03-01T07:59:59Z',
      false,
    ],
    [
      'the clocks skip its time',
      times('30 2 * * *', 'Europe/Berlin'),
      '2026-03-28T12:00:00Z',
      '2026-03-29T12:00:00Z',
      false,
    ],
    ['the clock was set back', NIGHTLY, '2027-01-01T00:00:00Z', '2026-03-01T03:00:00Z', false],
    ['it never ran, as far as anybody knows', NIGHTLY, '1970-01-01T00:00:00Z', '2026-03-01T03:00:00Z', true],
  ])('is known where %s', async (_what, when, after, now, expected) => {
    expect(await isOverdue(when, Date.parse(after), Date.parse(now))).toBe(expected)
  })
})

/** A schedule whose clock the test turns, and what it did: minutes after noon. */
function scheduled(given: Partial<CronDeps> = {}) {
  vi.useFakeTimers({
    now: NOON,
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'],
  })
  onTestFinished(() => void vi.useRealTimers())
  const lines: { msg?: string }[] = []
  const began: number[] = []
  let ranAt: number | null = null
  const { run = async () => {}, ...more } = given
  const schedule = createSchedule({
    ...NIGHTLY,
    lastRanAt: async () => ranAt,
    failed: 'the job failed',
    retryAfterMs: 10 * MINUTE_MS,
    clock: Date.now,
    log: createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) }),
    ...more,
    async run(stopping) {
      const at = Date.now()
      began.push((at - NOON) / MINUTE_MS)
      await run(stopping)
      ranAt = at
    },
  })
  onTestFinished(() => schedule.stop())
  return { ...schedule, began, lines, turn: turnBy }
}

const FROM_NOON_TO_THREE = (THREE - NOON) / MINUTE_MS

describe('a schedule', () => {
  it('runs at its times, and not before', async () => {
    const { began, turn, lines } = scheduled()
    await turn(FROM_NOON_TO_THREE * MINUTE_MS - 1)
    expect(began).toEqual([])
    await turn(1)
    expect(began).toEqual([FROM_NOON_TO_THREE])
    await turn(2 * DAY_MS)
    expect(began).toEqual([0, 1, 2].map((days) => FROM_NOON_TO_THREE + days * 24 * 60))
    expect(lines).toEqual([])
  })

  it('runs by the clocks of its time zone, in winter and in summer', async () => {
    const { began, turn } = scheduled(times('0 3 * * *', 'Europe/Berlin'))
    await turn(31 * DAY_MS)
    const inWinter = FROM_NOON_TO_THREE - 60
    expect(began).toHaveLength(31)
    expect([began[0], began.at(-1)]).toEqual([inWinter, inWinter + 30 * 24 * 60 - 60])
  })

  it('does once, at the start, what was missed while nobody ran it', async () => {
    const lastRanAt = vi.fn(async () => THREE - 5 * DAY_MS)
    const { began, turn } = scheduled({ lastRanAt })
    await turn(HOUR_MS)
    expect(began).toEqual([0])
    await turn(FROM_NOON_TO_THREE * MINUTE_MS)
    expect(began).toEqual([0, FROM_NOON_TO_THREE])
    expect(lastRanAt).toHaveBeenCalledTimes(1)
  })

  it.each([
    ['it ran last time', THREE - DAY_MS + 5],
    ['it never ran', null],
    ['it ran in the future', NOON + 99 * DAY_MS],
  ])('does nothing at the start where %s', async (_when, ranAt) => {
    const { began, turn } = scheduled({ lastRanAt: async () => ranAt })
    await turn(HOUR_MS)
    expect(began).toEqual([])
  })

  it('does once what became due while it was about to begin', async () => {
    const neverRan = Promise.resolve(null)
    const { began, turn } = scheduled({ ...times('1 12 * * *'), lastRanAt: () => neverRan })
    // It has looked at what is due by now, and its library is still being loaded.
    await neverRan
    vi.advanceTimersByTime(MINUTE_MS)
    await turn(HOUR_MS)
    expect(began).toEqual([2])
  })

  it('does once what was due while the machine slept', async () => {
    const { began, turn } = scheduled()
    await turn(HOUR_MS)
    vi.setSystemTime(THREE + 5 * DAY_MS + 7 * MINUTE_MS)
    await turn(DAY_MS)
    const woke = (THREE + 5 * DAY_MS + 7 * MINUTE_MS - NOON) / MINUTE_MS
    expect(began[0]).toBeGreaterThanOrEqual(woke)
    expect(began).toHaveLength(2)
    expect(began[1]).toBe(FROM_NOON_TO_THREE + 6 * 24 * 60)
  })

  it('never runs twice at once: what became due meanwhile is done once, afterwards', async () => {
    let end = () => {}
    let underWay = 0
    let most = 0
    const { began, turn } = scheduled({
      ...times('*/5 * * * *'),
      async run() {
        underWay += 1
        most = Math.max(most, underWay)
        await new Promise<void>((resolve) => {
          end = resolve
        })
        underWay -= 1
      },
    })
    await turn(27 * MINUTE_MS)
    expect(began).toEqual([5])
    end()
    await turn(2 * MINUTE_MS)
    expect(began).toHaveLength(2)
    expect(most).toBe(1)
    end()
  })

  it('tries a failed run again after a while, and says so', async () => {
    let failures = 2
    const { began, turn, lines } = scheduled({
      async run() {
        failures -= 1
        if (failures >= 0) throw new Error('no')
      },
    })
    await turn(FROM_NOON_TO_THREE * MINUTE_MS + HOUR_MS)
    expect(began.map((at) => at - FROM_NOON_TO_THREE)).toEqual([0, 10, 20])
    expect(lines.map(({ msg }) => msg)).toEqual(['the job failed', 'the job failed'])
  })

  it('runs on the leader alone, and what a leader left undone on the next one', async () => {
    let leads = false
    const { began, turn } = scheduled({ isLeader: () => leads })
    await turn(FROM_NOON_TO_THREE * MINUTE_MS + HOUR_MS)
    expect(began).toEqual([])
    leads = true
    await turn(2 * MINUTE_MS)
    expect(began).toHaveLength(1)
    await turn(DAY_MS)
    expect(began).toHaveLength(2)
  })

  it('leaves to others what they have done', async () => {
    let leads = false
    const { began, turn } = scheduled({ isLeader: () => leads, lastRanAt: async () => THREE + 5 })
    await turn(FROM_NOON_TO_THREE * MINUTE_MS + HOUR_MS)
    leads = true
    await turn(HOUR_MS)
    expect(began).toEqual([])
  })

  it('ends the run under way when it stops, waits for it, and runs no more', async () => {
    const order: string[] = []
    const { began, stop, turn, lines } = scheduled({
      run: (stopping) =>
        new Promise((_resolve, reject) => {
          stopping.addEventListener('abort', () => {
            order.push('ended')
            reject(new Error('stopped'))
          })
        }),
    })
    await turn(FROM_NOON_TO_THREE * MINUTE_MS)
    await stop()
    expect([began, order, lines]).toEqual([[FROM_NOON_TO_THREE], ['ended'], []])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('stops before it has begun, too', async () => {
    const { stop, began } = scheduled()
    await stop()
    expect(vi.getTimerCount()).toBe(0)
    expect(began).toEqual([])
  })
})
