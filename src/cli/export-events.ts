import { resolve } from 'node:path'
import { exportLine } from '../ingest/export-line.js'
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

/** Writes the events that the options mean, and then says how many; those that can't be checked any more are left out. */
export async function exportEvents(options: EventsExportOptions, context: CliContext): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const filter = eventFilterOf(options, config)
  const file = options.output === undefined ? null : resolve(context.folder, options.output)
  const output =
    file === null ? toStandardOutput(context) : openOutputFile(file, { replace: !!options.force, config })
  const progress = createProgress(file === null ? false : context.isTerminal, context)
  let deliveries = 0
  let removed = 0
  let altered = 0
  try {
    await readStore(config, async (db) => {
      const show = (reached: number, newest: number) => progress.show(deliveries, reached, newest)
      for await (const delivery of exportDeliveries(db, filter, show)) {
        const { body, isAltered } = delivery
        if (body !== null) {
          output.write(exportLine({ ...delivery, body }))
          deliveries += 1
        } else if (isAltered) altered += 1
        else removed += 1
      }
    })
    if (deliveries + removed + altered === 0) await explainNothingFound(filter, config, context)
    output.finish()
  } finally {
    progress.clear()
    output.discard()
  }
  if (!(options.json && file !== null)) context.err(leftOutText(removed, altered))
  if (file === null) return
  const lines = deliveries === 1 ? 'one line' : `${deliveries} lines`
  context.out(
    options.json
      ? jsonLine({ file, lines: deliveries, leftOut: removed + altered, altered })
      : `wrote ${lines} to ${file}\n`,
  )
}

function leftOutText(removed: number, altered: number): string {
  const gone = 'not there any more as signed, being old, or about somebody who was erased'
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
