import type { Config } from '../config/types.js'
import { createCheckLines, createImportLines } from '../ingest/import-lines.js'
import type { CliContext } from './context.js'
import type { ImportOptions, ImportTarget } from './import-target.js'
import { openIngest } from './open-ingest.js'

/** The store of no daemon, whose lock is held until it is closed; for a dry run nothing but the config. */
export async function storeAsTarget(
  { environment, withManual, dryRun }: ImportOptions,
  config: Config,
  { now }: CliContext,
): Promise<ImportTarget> {
  const rules = {
    environments: environment === undefined ? (['live', 'sandbox'] as const) : [environment],
    withManual: withManual === true,
  }
  const endpointNamed = (name: string) => config.endpoints.find((endpoint) => endpoint.name === name)
  if (dryRun) {
    const checkLines = createCheckLines({ endpointNamed, clock: now })
    return { importLines: (lines) => checkLines(lines, rules), close: async () => {} }
  }
  const { ingest, close } = await openIngest(config, now)
  const importLines = createImportLines({ endpointNamed, ingest, clock: now })
  return { importLines: (lines) => importLines(lines, rules), close }
}
