import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  addDaemonMetrics,
  addStoreMetrics,
  addSyncMetrics,
  createBackupMetrics,
  createMetrics,
} from '../../src/operations/metrics.js'
import { unreadableStore } from '../handlers/daemon-front.js'
import { ROOT } from '../world.js'

const never = () => Promise.reject(new Error('not read'))

/** The labels of each metric of the program, by the names of its series. */
function labelsBySeries(): ReadonlyMap<string, readonly string[]> {
  const { registry } = createMetrics(() => 0)
  addStoreMetrics({
    registry,
    endpointNames: () => [],
    db: unreadableStore(),
    readBytes: never,
    readBackfills: never,
    clock: () => 0,
  })
  addSyncMetrics(registry, never)
  createBackupMetrics(registry).made(0)
  addDaemonMetrics(registry, never)
  // The library's type leaves out what each of its metrics has.
  const metrics = registry.getMetricsAsArray() as unknown as readonly {
    readonly name: string
    readonly labelNames: readonly string[]
  }[]
  return new Map(
    metrics.flatMap(({ name, labelNames }) =>
      ['', '_bucket', '_count', '_sum'].map((suffix) => [`${name}${suffix}`, labelNames] as const),
    ),
  )
}

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8').replaceAll('\\"', '"')
const seriesIn = (text: string) => [
  ...text.matchAll(/\b((?:latchkey|process|nodejs)_[a-z0-9_]+)(?:\{([^{}]*)\})?/g),
]

it.each(['deploy/alerts.yaml', 'deploy/dashboard.json'])(
  '%s asks for metrics and labels that there are',
  (file) => {
    const known = labelsBySeries()
    const asked = seriesIn(textOf(file))
    expect(asked.length).toBeGreaterThan(20)
    const wrong = asked.filter(([, name = '', selectors = '']) => {
      // Prometheus adds these two.
      const labels = [...(known.get(name) ?? []), 'job', 'instance']
      return (
        !known.has(name) ||
        [...selectors.matchAll(/(\w+)[=!]/g)].some(([, label = '']) => !labels.includes(label))
      )
    })
    expect(wrong.map(([text]) => text)).toEqual([])
  },
)

it('has an alert for each metric that docs/operating.md calls worth one', () => {
  const [, table = ''] = /\| Metric \| Alert when \|\n((?:\|.*\n)+)/.exec(textOf('docs/operating.md')) ?? []
  const worthOne = [...table.matchAll(/^\| `(latchkey_\w+)`/gm)].map(([, name]) => name)
  expect(worthOne.length).toBeGreaterThan(10)
  const asked = seriesIn(textOf('deploy/alerts.yaml')).map(([, name]) => name)
  expect(worthOne.filter((name) => !asked.includes(name))).toEqual([])
})
