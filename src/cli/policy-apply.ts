import type { Command } from 'commander'
import { type DaemonOptions, jsonLine, withDaemonOption, withSharedOptions } from './command.js'
import { commandGroup } from './command-groups.js'
import type { CliContext } from './context.js'
import { differenceText } from './difference-text.js'

/** `latchkey policy apply`: puts the configured policy in force, and moves all sources to it. */
export function policyApplyCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'policy').command('apply')
  withDaemonOption(withSharedOptions(command, 'policy apply'))
    .description('put the configured policy in force, and move all sources to it, one after the other')
    .action(async (options: DaemonOptions) => {
      const { runRebuild } = await import('./run-rebuild.js')
      const summary = await runRebuild('configured', options, context)
      context.out(
        options.json
          ? jsonLine(summary)
          : `the configured policy is in force\n${differenceText(summary, { conditional: false })}`,
      )
    })
}
