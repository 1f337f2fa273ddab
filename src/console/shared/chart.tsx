/* Charts over time. Their library is loaded when the first one is shown. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { useTheme, useZone } from './preferences.js'
import { timeText } from './time.js'

export interface Series {
  readonly label: string
  /** One of the custom properties of the style, such as `--good`. */
  readonly color: string
  readonly values: readonly (number | null)[]
  readonly kind?: 'bars' | 'line'
}

interface ChartProps {
  /** What it shows, in a sentence: for those who do not see it. */
  readonly summary: string
  /** Epoch milliseconds. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** How an instant below the axis is written. */
  readonly format?: Intl.DateTimeFormatOptions
}

const HEIGHT = 180

const HOURS = { hour: '2-digit', minute: '2-digit' } as const

export function Chart({ summary, times, series, format = HOURS }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const [theme] = useTheme()
  const [zone] = useZone()
  const [isFailed, setFailed] = useState(false)
  const drawn = JSON.stringify([times, series])
  useEffect(() => {
    const { current: element } = place
    if (element === null) return
    let isGone = false
    let chart: { destroy(): void; setSize(size: { width: number; height: number }): void } | null = null
    const observer = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height: HEIGHT }))
    void import('uplot').then(
      ({ default: UPlot }) => {
        if (isGone) return
        const color = (name: string): string => {
          element.style.color = `var(--color${name.slice(1)})`
          return getComputedStyle(element).color
        }
        const axis = {
          stroke: color('--faint'),
          grid: { stroke: color('--line'), width: 1 },
          ticks: { show: false },
        }
        const bars = UPlot.paths.bars?.({ size: [0.7, 24] })
        chart = new UPlot(
          {
            width: element.clientWidth,
            height: HEIGHT,
            cursor: { drag: { x: false, y: false } },
            legend: { live: true },
            scales: { y: { range: (_, least, most) => [Math.min(least, 0), Math.max(most, 1)] } },
            axes: [
              { ...axis, values: (_, at) => at.map((one) => timeText(one * 1000, zone, format)) },
              { ...axis, size: 44 },
            ],
            series: [
              { label: 'Time', value: (_, at) => (at === null ? '–' : timeText(at * 1000, zone, format)) },
              ...series.map(({ label, color: name, kind = 'line' }) => ({
                label,
                stroke: color(name),
                fill: kind === 'bars' ? color(name) : 'transparent',
                width: 1.5,
                points: { show: false },
                ...(kind === 'bars' && bars !== undefined && { paths: bars }),
              })),
            ],
          },
          [times.map((at) => at / 1000), ...series.map(({ values }) => [...values])],
          element,
        )
        observer.observe(element)
      },
      () => setFailed(true),
    )
    return () => {
      isGone = true
      observer.disconnect()
      chart?.destroy()
    }
  }, [drawn, theme, zone])
  // What it shows can be said without it.
  return isFailed ? (
    <p>{summary}</p>
  ) : (
    <div class="min-h-52 min-w-0 **:min-w-0 **:border-0" ref={place} role="img" aria-label={summary} />
  )
}
