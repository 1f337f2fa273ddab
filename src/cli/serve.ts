import type { Command } from 'commander'
import { withSharedOptions } from './command.js'
import type { CliContext, SharedOptions } from './context.js'

/** `latchkey serve`: runs the daemon until it is told to stop. Makes a config where nobody named one. */
export function serveCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('serve'), 'serve', 'serve --config /etc/latchkey/config.json')
    .description('run the daemon; see `latchkey stop` and `latchkey reload`')
    .action(async (options: SharedOptions) => {
      const { runDaemon } = await import('./run-daemon.js')
      await runDaemon(options, context)
    })
}
