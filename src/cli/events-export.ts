import { resolve } from 'node:path'
import type { Command } from 'commander'
import { exportLine } from '../ingest/export-line.js'
import { exportDeliveries } from '../store/event-export.js'
import { commandGroup, jsonLine, loadNamedConfig, type SharedOptions, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { type EventFilterOptions, eventFilterOf, withEventFilter } from './event-options.js'
import { type Output, openOutputFile } from './output-file.js'
import { readStore } from './read-store.js'

interface EventsExportOptions extends SharedOptions, EventFilterOptions {
  readonly output?: string
  readonly force?: true
}

/** `latchkey events export`: stored events as they came, a line of JSON each, oldest first. */
export function eventsExportCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'events', 'the stored events').command('export')
  withSharedOptions(
    withEventFilter(command),
    'events export --output events.jsonl',
    'events export --type payment.refunded | gzip > refunds.jsonl.gz',
  )
    .description('write stored events as they came, a line of JSON each, oldest first')
    .option('--output <file>', 'write them to a file that only its owner may read')
    .option('--force', 'replace that file')
    .action((options: EventsExportOptions) => exportEvents(options, context))
}

async function exportEvents(options: EventsExportOptions, context: CliContext): Promise<void> {
  const { config } = loadNamedConfig(options, context)
  const filter = eventFilterOf(options, config)
  const file = options.output === undefined ? null : resolve(context.folder, options.output)
  const output =
    file === null ? toStandardOutput(context) : openOutputFile(file, { replace: !!options.force })
  const progress = createProgress(file === null ? false : context.isTerminal, context)
  let deliveries = 0
  let leftOut = 0
  try {
    await readStore(config, async (db) => {
      const show = (reached: number, newest: number) => progress.show(deliveries, reached, newest)
      for await (const delivery of exportDeliveries(db, filter, show)) {
        const { body } = delivery
        if (body === null) {
          leftOut += 1
          continue
        }
        output.write(exportLine({ ...delivery, body }))
        deliveries += 1
      }
    })
    output.finish()
  } finally {
    progress.clear()
    output.discard()
  }
  if (leftOut > 0 && !(options.json && file !== null)) context.err(leftOutText(leftOut))
  if (file === null) return
  const lines = deliveries === 1 ? 'one line' : `${deliveries} lines`
  context.out(options.json ? jsonLine({ file, lines: deliveries, leftOut }) : `wrote ${lines} to ${file}\n`)
}

function leftOutText(count: number): string {
  const bodies = count === 1 ? 'one body is' : `${count} bodies are`
  return `left out: ${bodies} not there any more as signed, being old, or about somebody who was erased\n`
}

function toStandardOutput({ out }: CliContext): Output {
  return { write: out, finish: () => {}, discard: () => {} }
}

/** One line that overwrites itself; nothing where no person looks, or looks at the events themselves. */
function createProgress(isShown: boolean, { err }: CliContext) {
  if (!isShown) return { show: () => {}, clear: () => {} }
  return {
    show: (written: number, reached: number, newest: number) =>
      err(`\r${written} written, ${Math.floor((100 * reached) / newest)} % of the store read`),
    clear: () => err('\r\u001b[K'),
  }
}
