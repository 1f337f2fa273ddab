import type { Issue } from '../errors.js'
import type { LineOutcome } from '../history/import.js'
import { type LineRefusal, refuseLine } from '../history/line.js'
import { MAX_LINE_BYTES, type NumberedLine } from './import-batches.js'

/** Enough to see what is wrong with a file; all of them could be as many as it has lines. */
const REFUSALS_TOLD = 20

interface ToldRefusal {
  readonly line: number
  readonly reason: LineRefusal
  readonly detail: string
}

/** What became of all lines so far. */
export interface ImportTally {
  add(line: NumberedLine, outcome: LineOutcome): void
  lines(): number
  refused(): number
  /** The first refused lines, as an error tells them. */
  issues(): readonly Issue[]
  json(): object
  text(): string
}

/** What becomes of a line that is never sent. */
export const TOO_LONG = refuseLine('line_too_long', `it has more than ${MAX_LINE_BYTES} bytes`)

const LEFT_OUT =
  'left out is what nobody signed, done by hand or told as it was read: --with-manual takes it\n'

export function createImportTally(): ImportTally {
  const counts = {
    applied: 0,
    ignored: 0,
    held: 0,
    quarantined: 0,
    duplicate: 0,
    left_out: 0,
    checked: 0,
    refused: 0,
  } satisfies Record<LineOutcome['outcome'], number>
  const refusals: ToldRefusal[] = []
  const total = () => Object.values(counts).reduce((sum, count) => sum + count, 0)

  return {
    add({ number }, result) {
      counts[result.outcome] += 1
      if (result.outcome !== 'refused' || refusals.length >= REFUSALS_TOLD) return
      refusals.push({ line: number, reason: result.reason, detail: result.detail })
    },
    lines: total,
    refused: () => counts.refused,
    issues: () =>
      refusals.map(({ line, reason, detail }) => ({ path: `line ${line}`, message: `${reason}: ${detail}` })),
    json() {
      const { duplicate: duplicates, left_out: leftOut, ...others } = counts
      return { lines: total(), ...others, duplicates, leftOut, refusals }
    },
    text() {
      const told = Object.entries(counts).filter(([, count]) => count > 0)
      const parts = told.map(([outcome, count]) => `${count} ${outcome.replace('_', ' ')}`)
      const hint = counts.left_out > 0 ? LEFT_OUT : ''
      return `${[`${total()} ${total() === 1 ? 'line' : 'lines'}`, ...parts].join(', ')}\n${hint}`
    },
  }
}
