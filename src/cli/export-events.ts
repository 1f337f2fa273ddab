import { resolve } from 'node:path'
import { exportEvents as exportedEvents } from '../history/export.js'
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
  const counts = { delivery: 0, reading: 0, removed: 0, altered: 0 }
  const written = () => counts.delivery + counts.reading
  try {
    await readStore(config, async (db) => {
      const show = (reached: number, newest: number) => progress.show(written(), reached, newest)
      for await (const exported of exportedEvents(db, filter, show)) {
        counts[exported.kind] += 1
        if ('line' in exported) output.write(exported.line)
      }
    })
    if (written() + counts.removed + counts.altered === 0) await explainNothingFound(filter, config, context)
    output.finish()
  } finally {
    progress.clear()
    output.discard()
  }
  if (!(options.json && file !== null)) context.err(readingsText(counts.reading) + leftOutText(counts))
  if (file === null) return
  const { reading: readings, removed, altered } = counts
  const lines = written()
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
