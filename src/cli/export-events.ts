import { resolve } from 'node:path'
import { exportable, exportLine } from '../ingest/export-line.js'
import { exportDeliveries } from '../store/event-export.js'
import { jsonLine, loadNamedConfig, type SharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { type EventFilterOptions, eventFilterOf } from './event-options.js'
import { explainNothingFound } from './nothing-found.js'
import { type Output, openOutputFile } from './output-file.js'
import { readStore } from './read-store.js'

export interface EventsExportOptions extends SharedOptions, EventFilterOptions {
  readonly output?: string
  readonly force?: true
}

/** Writes the events that the options mean, and then says how many, how many of them unsigned, and what is left out. */
export async function exportEvents(options: EventsExportOptions, context: CliContext): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const filter = eventFilterOf(options, config)
  const file = options.output === undefined ? null : resolve(context.folder, options.output)
  const output =
    file === null ? toStandardOutput(context) : openOutputFile(file, { replace: !!options.force, config })
  const progress = createProgress(file === null ? false : context.isTerminal, context)
  const counts = { lines: 0, readings: 0, removed: 0, altered: 0 }
  try {
    await readStore(config, async (db) => {
      const show = (reached: number, newest: number) => progress.show(counts.lines, reached, newest)
      for await (const delivery of exportDeliveries(db, filter, show)) {
        const told = exportable(delivery)
        if (told !== null) {
          output.write(exportLine(told))
          counts.lines += 1
          if (told.reading) counts.readings += 1
        } else if (delivery.isAltered) counts.altered += 1
        else counts.removed += 1
      }
    })
    if (counts.lines + counts.removed + counts.altered === 0)
      await explainNothingFound(filter, config, context)
    output.finish()
  } finally {
    progress.clear()
    output.discard()
  }
  if (!(options.json && file !== null)) context.err(readingsText(counts.readings) + leftOutText(counts))
  if (file === null) return
  const { lines, readings, removed, altered } = counts
  context.out(
    options.json
      ? jsonLine({ file, lines, readings, leftOut: removed + altered, altered })
      : `wrote ${lines === 1 ? 'one line' : `${lines} lines`} to ${file}\n`,
  )
}

interface Counts {
  readonly removed: number
  readonly altered: number
}

function readingsText(readings: number): string {
  if (readings === 0) return ''
  const [events, whose] =
    readings === 1 ? ['one event', 'its bytes are'] : [`${readings} events`, 'their bytes are']
  const why = `since ${whose} not there any more as signed`
  return `without a signature: ${events} as read, ${why}: an import takes that with --with-manual alone\n`
}

function leftOutText({ removed, altered }: Counts): string {
  const gone = 'not there any more, and could not be read, or came second under its id'
  const changed = 'not what came any more, but altered in the database: see latchkey doctor --thorough'
  return leftOutLine(removed, gone) + leftOutLine(altered, changed)
}

function leftOutLine(count: number, why: string): string {
  if (count === 0) return ''
  return `left out: ${count === 1 ? 'one body is' : `${count} bodies are`} ${why}\n`
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
