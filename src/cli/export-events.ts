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
    if (deliveries + leftOut === 0) await explainNothingFound(filter, config, context)
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
