import type { Standing } from './rounds.js'

/** The cells of one row, by column. */
export type TableRow = Readonly<Record<string, string>>

/** All rows have the same columns, the first of which is flush left, and the others, numbers, flush right. */
export function markdownTable(rows: readonly TableRow[]): string {
  const [first = '', ...others] = Object.keys(rows[0] ?? {})
  const width = (column: string): number =>
    Math.max(column.length, ...rows.map((row) => (row[column] ?? '').length))
  const line = (cellOf: (column: string) => string): string => {
    const flushRight = others.map((column) => cellOf(column).padStart(width(column)))
    return `| ${[cellOf(first).padEnd(width(first)), ...flushRight].join(' | ')} |`
  }
  const rules = others.map((column) => `${'-'.repeat(width(column) + 1)}:`)
  return [
    line((column) => column),
    `|${['-'.repeat(width(first) + 2), ...rules].join('|')}|`,
    ...rows.map((row) => line((column) => row[column] ?? '')),
  ].join('\n')
}

/** Each beside its ratio to these others. The µs are processor time of one request, in the server, in its database, and in the load. */
export function standingsTable(standings: readonly Standing[], comparedTo: readonly string[]): string {
  const rates = new Map(standings.map(({ name, median }) => [name, median.requestsPerSecond]))
  const hasDatabase = standings.some(({ median }) => median.databaseMicros > 0)
  const rows = standings.map(({ name, median }) => {
    const ratios = comparedTo.map((other) => [
      `× ${other}`,
      ratio(median.requestsPerSecond, rates.get(other) ?? Number.NaN),
    ])
    return {
      server: name,
      'requests/s': figure(median.requestsPerSecond),
      ...Object.fromEntries(ratios),
      'p50 ms': figure(median.p50Ms),
      'p99 ms': figure(median.p99Ms),
      'server µs': figure(median.serverMicros),
      ...(hasDatabase && { 'database µs': figure(median.databaseMicros) }),
      'load µs': figure(median.loadMicros),
    }
  })
  return markdownTable(rows)
}

/** Whole from a hundred on, else with two digits after the point at most. */
export function figure(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Math.round(value * 100) / 100)
}

export function ratio(value: number, base: number): string {
  return (value / base).toFixed(2)
}
