import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../config/types.js'
import { isLatchkeyError } from '../errors.js'
import type { ImportJson } from '../handlers/imports.js'
import { createCheckLines, createImportLines, type LineOutcome } from '../ingest/import-lines.js'
import type { Environment } from '../provider/event.js'
import { loadNamedConfig } from './command.js'
import type { CliContext } from './context.js'
import { type AskDaemon, type ChangeOptions, daemonAt, localDaemon } from './daemon-client.js'
import { openIngest } from './open-ingest.js'

export interface ImportOptions extends ChangeOptions {
  readonly environment?: Environment
  readonly withManual?: true
  readonly dryRun?: true
}

/** Where lines go: a daemon, or the store of none. */
export interface ImportTarget {
  /** What became of each, in their order. */
  importLines(lines: readonly string[]): Promise<readonly LineOutcome[]>
  close(): Promise<void>
}

/** A store that can't take them now is tried again so often: long enough for a checkpoint, a rebuild's swap, a start. */
const ATTEMPTS = 10
const WAIT_MS = 1_000

/** The daemon that `--url` names, or the local one; where none runs, the store itself, whose lock is held meanwhile. */
export async function openImportTarget(options: ImportOptions, context: CliContext): Promise<ImportTarget> {
  if (options.url !== undefined) return toDaemon(daemonAt(options.url, context), options)
  const { config } = loadNamedConfig(options, context)
  const target = toDaemon(localDaemon(config), options)
  try {
    // None, to find out whether anybody answers.
    await target.importLines([])
    return target
  } catch (error) {
    if (isLatchkeyError(error, 'daemon_unreachable')) return toStore(config, options, context)
    throw error
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
    importLines: patiently(
      async (lines) => ((await ask({ method: 'POST', path, lines })) as ImportJson).results,
    ),
    close: async () => {},
  }
}

async function toStore(config: Config, options: ImportOptions, { now }: CliContext): Promise<ImportTarget> {
  const rules = {
    environments: options.environment === undefined ? (['live', 'sandbox'] as const) : [options.environment],
    withManual: options.withManual === true,
  }
  const endpointNamed = (name: string) => config.endpoints.find((endpoint) => endpoint.name === name)
  if (options.dryRun) {
    const checkLines = createCheckLines({ endpointNamed })
    return { importLines: (lines) => checkLines(lines, rules), close: async () => {} }
  }
  const { ingest, close } = await openIngest(config, now)
  const importLines = createImportLines({ endpointNamed, ingest })
  return { importLines: patiently((lines) => importLines(lines, rules)), close }
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
