import type { Command } from 'commander'
import { commandGroup, jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { loadNamedConfig, type SharedOptions } from './context.js'
import { issueLine } from './failure.js'

/** `latchkey config check`: whether the daemon would start with this config. */
export function configCheckCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'config').command('check')
  withSharedOptions(command, 'config check --config /etc/latchkey/config.json')
    .description('check the config file, and show every problem at once')
    .action(async (options: SharedOptions) => {
      const { config, warnings } = await loadNamedConfig(options, context, 'all')
      if (options.json) {
        context.out(jsonLine({ ok: true, path: config.path, warnings }))
        return
      }
      context.out(`ok: ${config.path}\n`)
      for (const warning of warnings) context.out(`warning: ${issueLine(warning)}\n`)
    })
}
