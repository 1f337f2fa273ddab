import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createWarnOfGaps, type DeliveryGap } from '../../src/operations/delivery-gaps.js'

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
      msg: 'no delivery for unusually long: look at the sender and at what stands between',
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
