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

function gapAfter(arrivals: readonly number[], silence: number): DeliveryGap {
  return describeGap(paceOf(arrivals), Math.max(...arrivals) + silence)
}

/** One every so often, for so many days. */
function steady(every: number, days: number): readonly number[] {
  return Array.from({ length: Math.floor((days * DAY) / every) }, (_, n) => START + n * every)
}

/** From nine to five on weekdays, one every ten minutes, until the Friday of the second week. */
const OFFICE_HOURS = steady(10 * MINUTE, 12).filter((at) => {
  const [hour, day] = [new Date(at).getUTCHours(), new Date(at).getUTCDay()]
  return hour >= 9 && hour < 17 && day >= 1 && day <= 5
})

describe('the gap of an endpoint', () => {
  it('runs from the last arrival, beside the mean interval', () => {
    expect(gapAfter([START, START + HOUR, START + 2 * HOUR, START + 9 * HOUR], 5 * MINUTE)).toEqual({
      lastAt: START + 9 * HOUR,
      current: 5 * MINUTE,
      usualInterval: 3 * HOUR,
      unusualAfter: null,
      isUnusual: false,
    })
    expect(gapAfter([START], MINUTE)).toMatchObject({ usualInterval: null })
  })

  it('follows a new pace with the mean interval', () => {
    const faster = Array.from({ length: 200 }, (_, n) => START + 10 * DAY + n * MINUTE)
    const { usualInterval } = gapAfter([...steady(HOUR, 10), ...faster], 0)
    expect(Math.round((usualInterval ?? 0) / 1000)).toBe(60)
  })

  it('is never negative, though the clock steps back', () => {
    expect(gapAfter([START], -HOUR)).toMatchObject({ current: 0, isUnusual: false })
  })

  it('is never unusual while fewer than twenty events came', () => {
    const nineteen = steady(DAY, 19)
    expect(gapAfter(nineteen, 365 * DAY)).toMatchObject({ unusualAfter: null, isUnusual: false })
    expect(gapAfter(steady(DAY, 20), 365 * DAY)).toMatchObject({ isUnusual: true })
  })

  it('is unusual from twice the longest one of the last days on', () => {
    const hourly = steady(HOUR, 10)
    expect(gapAfter(hourly, 2 * HOUR)).toMatchObject({ unusualAfter: 2 * HOUR, isUnusual: false })
    expect(gapAfter(hourly, 2 * HOUR + 1)).toMatchObject({ isUnusual: true })
  })

  it('may last a quarter of an hour, however busy the endpoint is', () => {
    const busy = steady(20_000, 9)
    expect(gapAfter(busy, 15 * MINUTE)).toMatchObject({ usualInterval: 20_000, isUnusual: false })
    expect(gapAfter(busy, 15 * MINUTE + 1)).toMatchObject({ isUnusual: true })
  })

  it('may last three days while no whole week is known', () => {
    const firstDays = steady(HOUR, 6)
    expect(gapAfter(firstDays, 3 * DAY)).toMatchObject({ isUnusual: false })
    expect(gapAfter(firstDays, 3 * DAY + 1)).toMatchObject({ isUnusual: true })
  })

  it('is usual at night and over a weekend where such have passed before', () => {
    const last = Math.max(...OFFICE_HOURS)
    expect(new Date(last).toISOString()).toBe('2026-03-13T16:50:00.000Z')
    const untilMonday = Date.parse('2026-03-16T09:00:00Z') - last
    expect(gapAfter(OFFICE_HOURS, untilMonday)).toMatchObject({ isUnusual: false })
    expect(gapAfter(OFFICE_HOURS, 3 * untilMonday)).toMatchObject({ isUnusual: true })
  })

  it('forgets an outage within two weeks', () => {
    const after = steady(HOUR, 15).map((at) => at + 30 * DAY)
    expect(gapAfter([...steady(HOUR, 9), ...after], 3 * HOUR)).toMatchObject({ isUnusual: true })
  })

  it('is not shortened by older events that an import brings, nor by a burst', () => {
    const hourly = steady(HOUR, 10)
    const last = Math.max(...hourly)
    expect(paceOf([...hourly, last + 1, last + 999, START, last - HOUR / 2])).toEqual(paceOf(hourly))
  })
})

describe('whatever arrives,', () => {
  const arrivals = fc
    .array(
      fc.integer({ min: 0, max: 20 * 24 * 60 }).map((minute) => START + minute * MINUTE),
      { minLength: 20, maxLength: 400, size: 'max' },
    )
    .map((times) => [...new Set(times)].sort((a, b) => a - b))

  it('a silence no longer than twice one of the last week is never unusual', () => {
    fc.assert(
      fc.property(arrivals, (times) => {
        const last = times.at(-1) ?? START
        const lately = times.filter((at) => at >= last - 7 * DAY)
        const longest = Math.max(0, ...lately.slice(1).map((at, index) => at - (lately[index] ?? at)))
        expect(gapAfter(times, 2 * longest).isUnusual).toBe(false)
      }),
    )
  })

  it('a silence that is unusual stays so until the next arrival', () => {
    fc.assert(
      fc.property(
        arrivals,
        fc.integer({ min: 3 * DAY, max: 60 * DAY }),
        fc.nat(60 * DAY),
        (times, silence, more) => {
          fc.pre(gapAfter(times, silence).isUnusual)
          expect(gapAfter(times, silence + more).isUnusual).toBe(true)
        },
      ),
    )
  })
})

const LAST = Date.parse('2026-03-02T12:00:00Z')

function gap(told: Partial<DeliveryGap>): DeliveryGap {
  return { lastAt: LAST, current: 0, usualInterval: 60_000, unusualAfter: 900_000, isUnusual: false, ...told }
}

/** The job over gaps that a test sets, and what it has logged. */
function watching(endpointNames: readonly string[] = ['live']) {
  const gaps = new Map<string, DeliveryGap>()
  const logged: Record<string, unknown>[] = []
  const log = pino(
    { base: null, timestamp: false },
    { write: (line: string) => logged.push(JSON.parse(line)) },
  )
  const look = createWarnOfGaps({ readGaps: async () => gaps, endpointNames: () => endpointNames, log })
  return { gaps, logged, look }
}

const SILENT = gap({ current: 1_200_000, isUnusual: true })

it('warns once of an endpoint that has fallen silent, and says once that deliveries come again', async () => {
  const { gaps, logged, look } = watching()
  await look()
  gaps.set('live', gap({}))
  await look()
  expect(logged).toEqual([])

  gaps.set('live', SILENT)
  await look()
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
  ])

  gaps.set('live', gap({ lastAt: LAST + 1_800_000 }))
  await look()
  await look()
  expect(logged.slice(1)).toEqual([
    { level: 30, endpoint: 'live', silentSeconds: 1_800, msg: 'deliveries come again' },
  ])

  gaps.set('live', SILENT)
  await look()
  expect(logged).toHaveLength(3)
})

it('tells one endpoint from another, and nothing of one that is not configured', async () => {
  const { gaps, logged, look } = watching(['live', 'legacy'])
  gaps.set('live', gap({})).set('legacy', SILENT).set('removed', SILENT)
  await look()
  expect(logged.map(({ endpoint }) => endpoint)).toEqual(['legacy'])
})
