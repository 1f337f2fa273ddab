import type { Command } from 'commander'
import { commandGroup, jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { loadNamedConfig, type SharedOptions } from './context.js'

/** `latchkey keys list`: who may ask what. The keys themselves are kept nowhere. */
export function keysListCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'keys').command('list')
  withSharedOptions(command, 'keys list')
    .description('show the names, scopes and environments of the API keys')
    .action(async (options: SharedOptions) => {
      const { config } = await loadNamedConfig(options, context)
      const keys = config.apiKeys.map(({ name, scopes, environments }) => ({ name, scopes, environments }))
      if (options.json) {
        context.out(jsonLine({ keys }))
        return
      }
      if (keys.length === 0) context.out('no keys: make one with `latchkey keys create`\n')
      for (const { name, scopes, environments } of keys) {
        context.out(`${name}  ${scopes.join(',')}  ${environments.join(',')}\n`)
      }
    })
}
