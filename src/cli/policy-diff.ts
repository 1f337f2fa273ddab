import type { Command } from 'commander'
import type { Config } from '../config/types.js'
import { type SummaryJson, summaryJson } from '../handlers/rebuild-json.js'
import { createDifferenceCounter } from '../ingest/access-difference.js'
import { policyDifferences } from '../ingest/policy-difference.js'
import type { Environment } from '../provider/event.js'
import {
  commandGroup,
  environmentOption,
  jsonLine,
  loadNamedConfig,
  type SharedOptions,
  withSharedOptions,
} from './command.js'
import type { CliContext } from './context.js'
import { differenceText } from './difference-text.js'
import { readStore } from './read-store.js'

const SAMPLE_SIZE = 10

interface PolicyDiffOptions extends SharedOptions {
  readonly all?: true
  readonly environment?: Environment
}

/** `latchkey policy diff`: who would gain and who would lose access under the configured policy. */
export function policyDiffCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'policy', 'what grants and takes back access').command('diff')
  withSharedOptions(command, 'policy diff', 'policy diff --all --json')
    .description('show whose access would change under the configured policy; changes nothing')
    .option('--all', `name all of them (default: the first ${SAMPLE_SIZE})`)
    .addOption(environmentOption('which environment (default: both)'))
    .action(async (options: PolicyDiffOptions) => {
      const { config } = loadNamedConfig(options, context)
      const summary = await compare(config, options, context.now())
      context.out(options.json ? jsonLine(summary) : differenceText(summary, { conditional: true }))
    })
}

function compare(config: Config, { all, environment }: PolicyDiffOptions, now: number): Promise<SummaryJson> {
  const counter = createDifferenceCounter(all ? Number.POSITIVE_INFINITY : SAMPLE_SIZE)
  const environments: readonly Environment[] = environment ? [environment] : ['live', 'sandbox']
  return readStore(config, async (db) => {
    for (const one of environments) {
      for await (const difference of policyDifferences(db, one, config.policy, now)) counter.add(difference)
    }
    return summaryJson(counter.summary())
  })
}
