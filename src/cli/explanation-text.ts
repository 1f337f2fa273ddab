import type { Explanation } from '../entitlements/explain.js'
import type { ExplainedEvent, ExplainedSource } from '../entitlements/explain-source.js'
import type { AccessInterval } from '../entitlements/model.js'
import type { PolicyRow } from '../entitlements/reading.js'
import { alignColumns } from './columns.js'

/** An explanation for a person to read: the summary, then each source with its events in the order they count. */
export function explanationText({ summary, sources, held, blocks, erasures, ends }: Explanation): string {
  const sections = [
    `${summary}\n`,
    ...sources.map(sourceText),
    listText(
      'Waiting',
      held.map(({ id, type, sentence }) => `${id}  ${type}  ${sentence}`),
    ),
    listText(
      'Blocks',
      blocks.map(({ sentence }) => sentence),
    ),
    listText(
      'Erased',
      erasures.map(({ sentence }) => sentence),
    ),
    listText(
      'Coming ends',
      ends.map(({ sentence }) => sentence),
    ),
  ]
  return sections.filter((section) => section !== '').join('\n')
}

function sourceText({ kind, id, rail, intervals, events }: ExplainedSource): string {
  const paid = kind === 'manual' ? '' : ` (paid by ${rail === 'unknown' ? 'unknown means' : rail})`
  const access = intervals.length === 0 ? ['  no access'] : intervals.map((one) => `  ${intervalText(one)}`)
  const lines = [`${kind} ${id}${paid}`, ...access, ...eventLines(events)]
  return `${lines.join('\n')}\n`
}

function intervalText({ productId, from, until, reason }: AccessInterval): string {
  const end = until === null ? 'no end known' : `until ${time(until)}  ${reason}`
  return `access to ${productId}  from ${time(from)}  ${end}`
}

/** Two lines an event: its facts in columns, and what it did below them. */
function eventLines(events: readonly ExplainedEvent[]): string[] {
  const rows = events.map(({ createdAt, id, type, disposition, row }) => [
    time(createdAt),
    id,
    type,
    disposition,
    rowText(row),
  ])
  return alignColumns(rows).flatMap((line, index) => [`  ${line}`, `      ${events[index]?.sentence ?? ''}`])
}

function rowText(row: PolicyRow | null): string {
  if (row === null) return 'no row'
  return `${row.rail}: ${row.on === 'grant' ? 'grant' : 'take back'}`
}

function listText(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${[title, ...lines.map((line) => `  ${line}`)].join('\n')}\n`
}

function time(instant: number): string {
  return new Date(instant).toISOString()
}
