import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { counted } from '../doctor/finding.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { ImportJson } from '../handlers/events.js'
import type { LineOutcome } from '../history/import.js'
import type { RefusedLine } from '../history/line.js'
import { apiCommand, flag, type RegisterCommand } from './command.js'
import type { NumberedLine } from './import-input.js'
import { createProgress } from './progress.js'

/** How often a busy store is tried again: long enough for a checkpoint, or a start. */
const ATTEMPTS = 10
const WAIT_MS = 1_000

/** Enough to see what is wrong with a file: there could be as many as it has lines. */
const REFUSALS_SHOWN = 20

const LINES_TYPE = 'application/x-ndjson' satisfies typeof import('../handlers/body.js').LINES_TYPE

/**
 * `latchkey import`: imports exported events as if they were delivered now, and reports the result of every line, even
 * of those before a failure.
 */
export function importCommand(stdin: () => Readable): RegisterCommand {
  return apiCommand('import <file>', {
    kind: 'changes',
    about: 'import the output of "events export": signatures are checked, stored events are recognised',
    examples: ['import events.jsonl --dry-run', 'import events.jsonl --with-manual'],
    environment: 'refuse events of the other environment (default: import both)',
    arguments: { file: 'lines of JSON; "-" reads standard input' },
    options: {
      withManual: flag('also import unsigned lines: manual changes, and events whose bytes were removed'),
      dryRun: flag('only check every line'),
    },
    // Checked before a database is created for it.
    async check({ args: [file = ''], context }) {
      const { assertInput } = await import('./import-input.js')
      assertInput(pathTo(file, context))
    },
    async run({ api, options, args: [file = ''], context, show }) {
      const { importBatches, MAX_LINE_BYTES, openImportInput } = await import('./import-input.js')
      const input = openImportInput(pathTo(file, context), stdin)
      const progress = createProgress(context)
      const tally = createTally()
      const { environment, withManual = false, dryRun = false } = options
      const query = { withManual, dryRun, environment }
      const tooLong: RefusedLine = {
        outcome: 'refused',
        reason: 'line_too_long',
        detail: `it has more than ${MAX_LINE_BYTES} bytes`,
      }
      try {
        for await (const batch of importBatches(input.bytes)) {
          const text = batch.flatMap((line) => (line.text === null ? [] : [line.text])).join('\n')
          const request = { query, content: { type: LINES_TYPE, text } }
          const { results } = await patiently(() => api.send<ImportJson>('POST', '/imports', request))
          const outcomes = results.values()
          for (const line of batch) {
            const outcome = line.text === null ? tooLong : outcomes.next().value
            if (outcome !== undefined) tally.add(line, outcome)
          }
          progress.show(input.share(), `${tally.lines()} lines read`)
        }
      } catch (error) {
        progress.clear()
        if (tally.lines() === 0) throw error
        if (options.json) show(tally.json(), tally.text)
        else context.err(`stopped after ${tally.text()}`)
        if (!isLatchkeyError(error, 'input_failed')) throw error
        // Bad input does not undo the lines read before it.
        const { message, cause } = error
        const done = `the lines before that are ${dryRun ? 'checked' : 'imported'}`
        throw new LatchkeyError('input_failed', `${message}; ${done}`, { cause })
      }
      progress.clear()
      show(tally.json(), tally.text)
      tally.assertNoneRefused()
    },
  })
}

export const pathTo = (file: string, { folder }: { readonly folder: string }) =>
  file === '-' ? file : resolve(folder, file)

/** Sending lines again is safe: known events are recognised. */
export async function patiently<Answer>(attempt: () => Promise<Answer>): Promise<Answer> {
  for (let left = ATTEMPTS - 1; ; left -= 1) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0 || !isLatchkeyError(error, 'not_stored')) throw error
      await wait(WAIT_MS)
    }
  }
}

const LEFT_OUT =
  'skipped: unsigned lines (manual changes, and events whose bytes were removed); "latchkey import --with-manual" imports them\n'

/** The results of all lines so far. */
export function createTally() {
  const counts: Record<LineOutcome['outcome'], number> = {
    applied: 0,
    ignored: 0,
    held: 0,
    quarantined: 0,
    duplicate: 0,
    left_out: 0,
    checked: 0,
    refused: 0,
  }
  const refusals: (Pick<RefusedLine, 'reason' | 'detail'> & { readonly line: number })[] = []
  const lines = () => Object.values(counts).reduce((sum, count) => sum + count, 0)
  return {
    lines,
    add({ number: line }: Pick<NumberedLine, 'number'>, result: LineOutcome): void {
      counts[result.outcome] += 1
      if (result.outcome !== 'refused' || refusals.length >= REFUSALS_SHOWN) return
      refusals.push({ line, reason: result.reason, detail: result.detail })
    },
    json(): object {
      const { duplicate: duplicates, left_out: leftOut, ...others } = counts
      return { lines: lines(), ...others, duplicates, leftOut, refusals }
    },
    text(): string {
      const parts = Object.entries(counts).flatMap(([outcome, count]) =>
        count > 0 ? [`${count} ${outcome === 'left_out' ? 'skipped' : outcome}`] : [],
      )
      const all = [counted(lines(), 'line'), ...parts].join(', ')
      return `${all}\n${counts.left_out > 0 ? LEFT_OUT : ''}`
    },
    /** @throws {LatchkeyError} `lines_refused`, with the first refused lines */
    assertNoneRefused(): void {
      if (counts.refused === 0) return
      const refused = counts.refused === 1 ? 'one line was' : `${counts.refused} lines were`
      const issues = refusals.map(({ line, reason, detail }) => ({
        path: `line ${line}`,
        message: `${reason}: ${detail}`,
      }))
      throw new LatchkeyError('lines_refused', `${refused} refused; all other lines were read`, { issues })
    },
  }
}
