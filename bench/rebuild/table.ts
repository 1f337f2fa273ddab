import { figure, markdownTable, ratio } from '../table.js'
import type { Effort } from './effort.js'

/** How long each took, and how many times as fast or slow as the first one it is. */
export function effortTable(events: number, efforts: readonly (readonly [string, Effort])[]): string {
  const first = efforts[0]?.[1]
  const base = first ?? { seconds: Number.NaN, cpuSeconds: Number.NaN }
  return markdownTable(
    efforts.map(([name, effort]) => ({
      work: name,
      seconds: figure(effort.seconds),
      'events/s': figure(events / effort.seconds),
      '× reading': ratio(base.seconds, effort.seconds),
      'CPU s': figure(effort.cpuSeconds),
      '× reading, CPU': ratio(base.cpuSeconds, effort.cpuSeconds),
      'MB from disk': figure(effort.diskMb),
      'MB at most': figure(effort.peakMb),
    })),
  )
}
