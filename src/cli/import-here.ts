import type { Config } from '../config/types.js'
import { importLines } from '../history/import.js'
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
  const opened = dryRun ? null : await openIngest(config, now)
  const deps = { endpointNamed, ingest: opened?.ingest ?? null, clock: now }
  return {
    importLines: (lines) => importLines(lines, rules, deps),
    close: async () => opened?.close(),
  }
}
