import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addArrivals,
  afterUnread,
  type DeliveryGap,
  describeGap,
  NO_DELIVERIES,
} from '../../src/operations/delivery-gaps.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** A Monday. */
const START = Date.parse('2026-03-02T00:00:00Z')

function gapAfter(arrivals: readonly number[], silence: number): DeliveryGap | null {
  return describeGap(addArrivals(NO_DELIVERIES, arrivals), Math.max(...arrivals) + silence)
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
  it('is none where nothing ever arrived', () => {
    expect(describeGap(NO_DELIVERIES, START)).toBeNull()
  })

  it('runs from the last arrival, beside the usual interval', () => {
    expect(gapAfter([START, START + HOUR, START + 2 * HOUR, START + 9 * HOUR], 5 * MINUTE)).toEqual({
      lastAt: START + 9 * HOUR,
      current: 5 * MINUTE,
      usualInterval: HOUR,
      unusualAfter: null,
      isUnusual: false,
    })
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
    expect(gapAfter(OFFICE_HOURS, untilMonday)).toMatchObject({
      usualInterval: 10 * MINUTE,
      isUnusual: false,
    })
    expect(gapAfter(OFFICE_HOURS, 3 * untilMonday)).toMatchObject({ isUnusual: true })
  })

  it('forgets an outage once it is more than eight days old', () => {
    const after = steady(HOUR, 9).map((at) => at + 30 * DAY)
    expect(gapAfter([...steady(HOUR, 9), ...after], 3 * HOUR)).toMatchObject({ isUnusual: true })
  })

  it('has no usual interval where the newest arrivals were not all read', () => {
    const history = afterUnread(addArrivals(NO_DELIVERIES, steady(HOUR, 10)))
    const now = START + 10 * DAY
    expect(describeGap(history, now)).toMatchObject({ current: HOUR, usualInterval: null, isUnusual: false })
    expect(describeGap(addArrivals(history, [now, now + MINUTE]), now + MINUTE)).toMatchObject({
      usualInterval: MINUTE,
    })
  })
})

describe('whatever arrives,', () => {
  const arrivals = fc.array(
    fc.integer({ min: 0, max: 20 * 24 * 60 }).map((minute) => START + minute * MINUTE),
    { minLength: 20, maxLength: 400, size: 'max' },
  )

  it('the same arrivals told in one go, in parts or in another order come to the same last one', () => {
    fc.assert(
      fc.property(arrivals, fc.nat(400), (times, cut) => {
        const parts = addArrivals(addArrivals(NO_DELIVERIES, times.slice(cut)), times.slice(0, cut))
        const now = START + 30 * DAY
        expect(describeGap(parts, now)?.lastAt).toBe(Math.max(...times))
        expect(describeGap(addArrivals(NO_DELIVERIES, times), now)?.lastAt).toBe(Math.max(...times))
      }),
    )
  })

  it('a silence no longer than twice one of the last days is never unusual', () => {
    fc.assert(
      fc.property(arrivals, (times) => {
        const sorted = [...times].sort((a, b) => a - b)
        const last = sorted.at(-1) ?? START
        const lately = sorted.filter((at) => at >= last - 8 * DAY)
        const longest = Math.max(0, ...lately.slice(1).map((at, index) => at - (lately[index] ?? at)))
        expect(gapAfter(times, 2 * longest)?.isUnusual).toBe(false)
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
          const isUnusual = gapAfter(times, silence)?.isUnusual
          fc.pre(isUnusual === true)
          expect(gapAfter(times, silence + more)?.isUnusual).toBe(true)
        },
      ),
    )
  })

  it('what is kept of it is bounded', () => {
    const busy = addArrivals(NO_DELIVERIES, steady(10_000, 12))
    expect(busy.recent).toHaveLength(200)
    expect(busy.earlier.length).toBeLessThanOrEqual((8 * DAY) / (5 * MINUTE) + 1)
  })
})
