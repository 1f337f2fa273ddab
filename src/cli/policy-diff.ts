import type { Command } from 'commander'
import type { Environment } from '../provider/event.js'
import {
  environmentOption,
  jsonLine,
  loadNamedConfig,
  type SharedOptions,
  withSharedOptions,
} from './command.js'
import { commandGroup } from './command-groups.js'
import type { CliContext } from './context.js'
import { differenceText } from './difference-text.js'

const SAMPLE_SIZE = 10

interface PolicyDiffOptions extends SharedOptions {
  readonly all?: true
  readonly environment?: Environment
}

/** `latchkey policy diff`: who would gain and who would lose access under the configured policy. */
export function policyDiffCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'policy').command('diff')
  withSharedOptions(command, 'policy diff', 'policy diff --all --json')
    .description('show whose access would change under the configured policy; changes nothing')
    .option('--all', `name all of them (default: the first ${SAMPLE_SIZE})`)
    .addOption(environmentOption('which environment (default: both)'))
    .action(async (options: PolicyDiffOptions) => {
      const { comparePolicies } = await import('./compare-policies.js')
      const { all, environment } = options
      const { config } = await loadNamedConfig(options, context)
      const summary = await comparePolicies(config, context, {
        environments: environment ? [environment] : ['live', 'sandbox'],
        sampleSize: all ? Number.POSITIVE_INFINITY : SAMPLE_SIZE,
      })
      context.out(options.json ? jsonLine(summary) : differenceText(summary, { conditional: true }))
    })
}
