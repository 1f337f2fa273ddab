/* Charts over time. Their library is loaded when the first one is shown. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Options } from 'uplot'
import { useTheme, useZone } from './preferences.js'
import { timeText } from './text.js'

type Kind = 'bars' | 'line'
type Values = readonly (number | null)[]
/** Its color is one of the custom properties of the style, such as `--good`. */
type Series = { readonly label: string; readonly color: string; readonly kind: Kind; readonly values: Values }

interface ChartProps {
  /** What it shows, in a sentence: for those who do not see it. */
  readonly summary: string
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** How an instant below the axis is written. */
  readonly format?: Intl.DateTimeFormatOptions
}

const HEIGHT = 180
const HOURS = { hour: '2-digit', minute: '2-digit' } as const

async function draw(element: HTMLElement, { times, series }: ChartProps, textOf: (at: number) => string) {
  const { default: UPlot } = await import('uplot')
  const color = (name: string): string => {
    element.style.color = `var(--color${name.slice(1)})`
    return getComputedStyle(element).color
  }
  const grid = { stroke: color('--line'), width: 1 }
  const axis = { stroke: color('--faint'), grid, ticks: { show: false } }
  const bars = UPlot.paths.bars?.({ size: [0.7, 24] })
  const lines = series.map(({ label, color: name, kind }) => {
    const bar = kind === 'bars' && { fill: color(name), ...(bars && { paths: bars }) }
    return { label, stroke: color(name), width: 1.5, points: { show: false }, ...bar }
  })
  const options: Options = {
    width: element.clientWidth,
    height: HEIGHT,
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, least, most) => [Math.min(least, 0), Math.max(most, 1)] } },
    axes: [
      { ...axis, values: (_, at) => at.map(textOf) },
      { ...axis, size: 44 },
    ],
    series: [{ label: 'Time', value: (_, at) => (at === null ? '–' : textOf(at)) }, ...lines],
  }
  const data = [times.map((at) => at / 1000), ...series.map(({ values }) => [...values])]
  return new UPlot(options, data as [number[]], element)
}

type Drawn = Awaited<ReturnType<typeof draw>>

export function Chart(props: ChartProps) {
  const { summary, format = HOURS } = props
  const place = useRef<HTMLDivElement>(null)
  const [theme] = useTheme()
  const [zone] = useZone()
  const [isFailed, setFailed] = useState(false)
  useEffect(() => {
    const { current: element } = place
    if (element === null) return
    const drawing = draw(element, props, (at) => timeText(at * 1000, zone, format))
    drawing.catch(() => setFailed(true))
    const withChart = (act: (chart: Drawn) => void): void => void drawing.then(act, () => {})
    const fit = (): void => withChart((one) => one.setSize({ width: element.clientWidth, height: HEIGHT }))
    const observer = new ResizeObserver(fit)
    observer.observe(element)
    return () => {
      observer.disconnect()
      withChart((chart) => chart.destroy())
    }
  }, [JSON.stringify(props), theme, zone])
  // What it shows can be said without it.
  if (isFailed) return <p>{summary}</p>
  return <div class="min-h-52 min-w-0 **:min-w-0 **:border-0" ref={place} role="img" aria-label={summary} />
}
