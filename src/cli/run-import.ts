import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'
import { importBatches, type NumberedLine } from './import-batches.js'
import { type ImportInput, openImportInput } from './import-input.js'
import { createImportTally, type ImportTally, TOO_LONG } from './import-tally.js'
import type { ImportOptions, ImportTarget } from './import-target.js'
import { openImportTarget } from './open-import-target.js'

/**
 * Takes in a file, or standard input, and says what became of its lines, of those before a failure too.
 * @throws {LatchkeyError} `lines_refused` at the end; `input_failed`
 */
export async function runImport(
  file: string,
  stdin: () => Readable,
  options: ImportOptions,
  context: CliContext,
): Promise<void> {
  const path = file === '-' ? file : resolve(context.folder, file)
  const tally = createImportTally()
  try {
    await importAll(openImportInput(path, stdin), tally, options, context)
  } catch (error) {
    if (tally.lines() === 0) throw error
    if (options.json) context.out(jsonLine(tally.json()))
    else context.err(`stopped after ${tally.text()}`)
    throw afterLines(error, options)
  }
  context.out(options.json ? jsonLine(tally.json()) : tally.text())
  if (tally.refused() > 0) throw refusal(tally)
}

async function importAll(
  input: ImportInput,
  tally: ImportTally,
  options: ImportOptions,
  context: CliContext,
): Promise<void> {
  const progress = createProgress(input, context)
  const target = await openImportTarget(options, context)
  try {
    for await (const batch of importBatches(input.bytes)) {
      await importBatch(batch, target, tally)
      progress.show(tally.lines())
    }
  } finally {
    progress.clear()
    await target.close()
  }
}

async function importBatch(
  batch: readonly NumberedLine[],
  { importLines }: ImportTarget,
  tally: ImportTally,
): Promise<void> {
  const sent = batch.flatMap(({ text }) => (text === null ? [] : [text]))
  const outcomes = (await importLines(sent)).values()
  for (const line of batch) {
    const outcome = line.text === null ? TOO_LONG : outcomes.next().value
    if (outcome !== undefined) tally.add(line, outcome)
  }
}

/** What is wrong with the input undoes nothing of what was read before. */
function afterLines(error: unknown, { dryRun }: ImportOptions): unknown {
  if (!isLatchkeyError(error, 'input_failed')) return error
  const done = dryRun ? 'checked' : 'taken in'
  return new LatchkeyError('input_failed', `${error.message}; the lines before that are ${done}`, {
    cause: error.cause,
  })
}

function refusal(tally: ImportTally): LatchkeyError {
  const refused = tally.refused() === 1 ? 'one line was' : `${tally.refused()} lines were`
  return new LatchkeyError('lines_refused', `${refused} refused; all others were gone through`, {
    issues: tally.issues(),
  })
}

/** One line that overwrites itself; nothing where no person looks. */
function createProgress({ size, reached }: ImportInput, { isTerminal, err }: CliContext) {
  if (!isTerminal) return { show: () => {}, clear: () => {} }
  const share = () => (size ? `, ${Math.floor((100 * reached()) / size)} % of the file read` : '')
  return {
    show: (lines: number) => err(`\r${lines} lines${share()}`),
    clear: () => err('\r\u001b[K'),
  }
}
