import type { Command } from 'commander'
import { commandGroup, jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { type ChangeOptions, withDaemonOption } from './daemon-client.js'
import { differenceText } from './difference-text.js'
import { runRebuild } from './run-rebuild.js'

/** `latchkey policy apply`: puts the configured policy in force, by folding all stored events anew. */
export function policyApplyCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'policy', 'what grants and takes back access').command('apply')
  withDaemonOption(withSharedOptions(command, 'policy apply'))
    .description('put the configured policy in force: rebuilds beside the live state, and swaps')
    .action(async (options: ChangeOptions) => {
      const summary = await runRebuild('configured', options, context)
      context.out(
        options.json
          ? jsonLine(summary)
          : `the configured policy is in force\n${differenceText(summary, { conditional: false })}`,
      )
    })
}
