import type { Config } from '../config/types.js'
import { type ImportRules, importLines } from '../history/import.js'
import type { CliContext } from './context.js'
import { openIngest } from './open-ingest.js'

/** The store that no daemon serves, whose lock is held until it is closed; a dry run needs nothing but the config. */
export async function storeAsTarget(
  rules: ImportRules,
  dryRun: boolean,
  { config, now }: { readonly config: Config } & Pick<CliContext, 'now'>,
) {
  const endpointNamed = (name: string) => config.endpoints.find((endpoint) => endpoint.name === name)
  const opened = dryRun ? null : await openIngest(config, now)
  const deps = { endpointNamed, ingest: opened?.ingest ?? null, clock: now }
  return {
    importLines: (lines: readonly string[]) => importLines(lines, rules, deps),
    close: async () => opened?.close(),
  }
}
