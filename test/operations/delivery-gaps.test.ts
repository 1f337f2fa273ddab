import fc from 'fast-check'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { createWarnOfGaps, type DeliveryGap, describeGap } from '../../src/operations/delivery-gaps.js'
import { type DeliveryPace, withArrival } from '../../src/store/deliveries.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** A Monday. */
const START = Date.parse('2026-03-02T00:00:00Z')

function paceOf(arrivals: readonly number[]): DeliveryPace {
  const pace = arrivals.reduce<DeliveryPace | undefined>(withArrival, undefined)
  if (pace === undefined) throw new Error('There is no arrival.')
  return pace
}

const gapAfter = (arrivals: readonly number[], silence: number): DeliveryGap =>
  describeGap(paceOf(arrivals), Math.max(...arrivals) + silence)

/** One every so often, for so many days. */
const steady = (every: number, days: number): readonly number[] =>
  Array.from({ length: Math.floor((days * DAY) / every) }, (_, n) => START + n * every)

/** From nine to five on weekdays, one every ten minutes, until the Friday of the second week. */
const OFFICE_HOURS = steady(10 * MINUTE, 12).filter((at) => {
  const [hour, day] = [new Date(at).getUTCHours(), new Date(at).getUTCDay()]
  return hour >= 9 && hour < 17 && day >= 1 && day <= 5
})
const UNTIL_MONDAY = Date.parse('2026-03-16T09:00:00Z') - Math.max(...OFFICE_HOURS)

describe('the gap of an endpoint', () => {
  it('runs from the last arrival, beside the mean interval, which follows a new pace', () => {
    expect(gapAfter([START, START + HOUR, START + 2 * HOUR, START + 9 * HOUR], 5 * MINUTE)).toEqual({
      lastAt: START + 9 * HOUR,
      current: 5 * MINUTE,
      usualInterval: 3 * HOUR,
      unusualAfter: null,
      isUnusual: false,
    })
    expect(gapAfter([START], MINUTE)).toMatchObject({ usualInterval: null })
    const faster = Array.from({ length: 200 }, (_, n) => START + 10 * DAY + n * MINUTE)
    const { usualInterval } = gapAfter([...steady(HOUR, 10), ...faster], 0)
    expect(Math.round((usualInterval ?? 0) / 1000)).toBe(60)
    // Though the clock steps back.
    expect(gapAfter([START], -HOUR)).toMatchObject({ current: 0, isUnusual: false })
  })

  const forgotten = [...steady(HOUR, 9), ...steady(HOUR, 15).map((at) => at + 30 * DAY)]
  it.each<[string, readonly number[], silence: number, isUnusual: boolean]>([
    ['never while fewer than twenty events came', steady(DAY, 19), 365 * DAY, false],
    ['once twenty events came', steady(DAY, 20), 365 * DAY, true],
    ['not at twice the longest one of the last days', steady(HOUR, 10), 2 * HOUR, false],
    ['beyond twice the longest one of the last days', steady(HOUR, 10), 2 * HOUR + 1, true],
    ['not within a quarter of an hour, however busy', steady(20_000, 9), 15 * MINUTE, false],
    ['beyond that', steady(20_000, 9), 15 * MINUTE + 1, true],
    ['not within three days while no whole week is known', steady(HOUR, 6), 3 * DAY, false],
    ['beyond those', steady(HOUR, 6), 3 * DAY + 1, true],
    ['not over a night or weekend such as have passed before', OFFICE_HOURS, UNTIL_MONDAY, false],
    ['over three of them', OFFICE_HOURS, 3 * UNTIL_MONDAY, true],
    ['where an outage was more than two weeks ago', forgotten, 3 * HOUR, true],
  ])('is unusual %s', (_when, arrivals, silence, isUnusual) => {
    expect(gapAfter(arrivals, silence)).toMatchObject({ isUnusual })
  })

  it('is not shortened by older events that an import brings, nor by a burst', () => {
    const hourly = steady(HOUR, 10)
    const last = Math.max(...hourly)
    expect(paceOf([...hourly, last + 1, last + 999, START, last - HOUR / 2])).toEqual(paceOf(hourly))
  })

  const arrivals = fc
    .array(
      fc.integer({ min: 0, max: 20 * 24 * 60 }).map((minute) => START + minute * MINUTE),
      { minLength: 20, maxLength: 400, size: 'max' },
    )
    .map((times) => [...new Set(times)].sort((a, b) => a - b))

  it('is never unusual, whatever arrives, up to twice one of the last week, and then until the next arrival', () => {
    const never = fc.property(arrivals, (times) => {
      const last = times.at(-1) ?? START
      const lately = times.filter((at) => at >= last - 7 * DAY)
      const longest = Math.max(0, ...lately.slice(1).map((at, index) => at - (lately[index] ?? at)))
      expect(gapAfter(times, 2 * longest).isUnusual).toBe(false)
    })
    fc.assert(never)
    const silence = fc.integer({ min: 3 * DAY, max: 60 * DAY })
    const stays = fc.property(arrivals, silence, fc.nat(60 * DAY), (times, first, more) => {
      fc.pre(gapAfter(times, first).isUnusual)
      expect(gapAfter(times, first + more).isUnusual).toBe(true)
    })
    fc.assert(stays)
  })
})

describe('the job that looks for gaps', () => {
  const LAST = Date.parse('2026-03-02T12:00:00Z')
  const USUAL = { lastAt: LAST, current: 0, usualInterval: 60_000, unusualAfter: 900_000, isUnusual: false }
  const SILENT = { ...USUAL, current: 1_200_000, isUnusual: true }

  /** Over gaps that a test sets, and what it has logged. */
  function watching(...endpointNames: readonly string[]) {
    const gaps = new Map<string, DeliveryGap>()
    const logged: Record<string, unknown>[] = []
    const log = pino(
      { base: null, timestamp: false },
      { write: (line: string) => logged.push(JSON.parse(line)) },
    )
    const look = createWarnOfGaps(
      async () => gaps,
      () => endpointNames,
      log,
    )
    return { gaps, logged, look }
  }

  it('warns once of an endpoint that has fallen silent, and says once that deliveries come again', async () => {
    const { gaps, logged, look } = watching('live')
    await look()
    for (const gap of [USUAL, SILENT, SILENT, { ...USUAL, lastAt: LAST + 1_800_000 }]) {
      gaps.set('live', gap)
      await look()
    }
    await look()
    expect(logged).toEqual([
      {
        level: 40,
        endpoint: 'live',
        lastDelivery: '2026-03-02T12:00:00.000Z',
        silentSeconds: 1_200,
        usualIntervalSeconds: 60,
        msg: 'no delivery for an unusually long time: check the sender, and the proxies on the way',
      },
      { level: 30, endpoint: 'live', silentSeconds: 1_800, msg: 'deliveries arrive again' },
    ])
    gaps.set('live', SILENT)
    await look()
    expect(logged).toHaveLength(3)
  })

  it('tells one endpoint from another, and nothing of one that is not configured', async () => {
    const { gaps, logged, look } = watching('live', 'legacy')
    gaps.set('live', USUAL).set('legacy', SILENT).set('removed', SILENT)
    await look()
    expect(logged.map(({ endpoint }) => endpoint)).toEqual(['legacy'])
  })
})
