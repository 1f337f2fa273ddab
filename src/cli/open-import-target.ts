import { setTimeout as wait } from 'node:timers/promises'
import { isLatchkeyError } from '../errors.js'
import { type ImportJson, LINES_TYPE } from '../handlers/imports.js'
import type { LineOutcome } from '../history/import.js'
import { loadNamedConfig } from './command.js'
import type { CliContext } from './context.js'
import { type AskDaemon, daemonAt, localDaemon } from './daemon-client.js'
import type { ImportOptions, ImportTarget } from './import-target.js'

/** A store that can't take them now is tried again so often: long enough for a checkpoint, or a start. */
const ATTEMPTS = 10
const WAIT_MS = 1_000

/** The daemon that `--url` names, or the local one; where none runs, the store itself, whose lock is held meanwhile. */
export async function openImportTarget(options: ImportOptions, context: CliContext): Promise<ImportTarget> {
  if (options.url !== undefined) return toDaemon(daemonAt(options.url, context), options)
  const { config } = await loadNamedConfig(options, context)
  const target = toDaemon(localDaemon(config), options)
  try {
    // None, to find out whether anybody answers.
    await target.importLines([])
    return target
  } catch (error) {
    if (!isLatchkeyError(error, 'daemon_unreachable')) throw error
    const { storeAsTarget } = await import('./import-here.js')
    const { importLines, close } = await storeAsTarget(options, config, context)
    return { importLines: patiently(importLines), close }
  }
}

function toDaemon(ask: AskDaemon, { environment, withManual, dryRun }: ImportOptions): ImportTarget {
  const query = new URLSearchParams({
    withManual: String(withManual === true),
    dryRun: String(dryRun === true),
    ...(environment === undefined ? {} : { environment }),
  })
  const path = `/imports?${query}`
  return {
    importLines: patiently(async (lines) => {
      const content = { type: LINES_TYPE, text: lines.join('\n') }
      return ((await ask({ method: 'POST', path, content })) as ImportJson).results
    }),
    close: async () => {},
  }
}

/** Sending lines again is safe: what is stored already is recognised. */
function patiently(importLines: ImportTarget['importLines']): ImportTarget['importLines'] {
  async function attempt(lines: readonly string[], left: number): Promise<readonly LineOutcome[]> {
    try {
      return await importLines(lines)
    } catch (error) {
      if (left === 0 || !isLatchkeyError(error, 'not_stored')) throw error
      await wait(WAIT_MS)
      return attempt(lines, left - 1)
    }
  }
  return (lines) => attempt(lines, ATTEMPTS - 1)
}
