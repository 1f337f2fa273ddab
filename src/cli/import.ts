import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import { environmentOption, jsonLine, type RegisterCommand, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { withDaemonOption } from './daemon-client.js'
import { importBatches, type NumberedLine } from './import-batches.js'
import { type ImportInput, openImportInput } from './import-input.js'
import { createImportTally, type ImportTally, TOO_LONG } from './import-tally.js'
import { type ImportOptions, type ImportTarget, openImportTarget } from './import-target.js'

/** `latchkey import`: takes exported events in, as if they were delivered now. */
export function importCommand(stdin: () => Readable): RegisterCommand {
  return (program: Command, context: CliContext) => {
    withDaemonOption(
      withSharedOptions(
        program.command('import'),
        'import events.jsonl --dry-run',
        'import events.jsonl.gz --with-manual',
      ),
    )
      .description(
        'take in what "events export" wrote: signatures are checked, what is stored already is recognised',
      )
      .argument('<file>', 'lines of JSON, gzip or not; "-" reads standard input')
      .option('--with-manual', 'take also what was done by hand, which nobody signed')
      .option('--dry-run', 'only check every line')
      .addOption(environmentOption('refuse events of the other environment (default: take both)'))
      .action(async (file: string, options: ImportOptions) => {
        const path = file === '-' ? file : resolve(context.folder, file)
        const tally = createImportTally()
        try {
          await importAll(openImportInput(path, stdin), tally, options, context)
        } catch (error) {
          if (tally.lines() > 0 && !options.json) context.err(`stopped after ${tally.text()}`)
          throw error
        }
        context.out(options.json ? jsonLine(tally.json()) : tally.text())
        if (tally.refused() > 0) throw refusal(tally)
      })
  }
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
