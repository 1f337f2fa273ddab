import { type Command, Option } from 'commander'
import { issueLine } from '../errors.js'
import { API_SCOPES } from '../handlers/api-key.js'
import { commandGroup, jsonLine, withSharedOptions } from './command.js'
import { type CliContext, loadNamedConfig, type SharedOptions } from './context.js'
import type { KeysCreateOptions } from './create-key.js'

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

/** `latchkey keys create`: makes a key, keeps its hash in the config file and shows the key once. */
export function keysCreateCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'keys').command('create')
  withSharedOptions(command, 'keys create --name app --scope read --environment live')
    .description('make an API key and add its hash to the config file')
    .requiredOption('--name <name>', 'what logs call the key')
    .addOption(
      new Option('--scope <scopes...>', 'what the key may do').choices(API_SCOPES).makeOptionMandatory(),
    )
    .addOption(
      new Option('--environment <names...>', 'which environments the key may see')
        .choices(['live', 'sandbox'])
        .makeOptionMandatory(),
    )
    .option('--print', 'print the key and its config entry, and leave the config file alone')
    .action(async (options: KeysCreateOptions) => {
      const { createKey } = await import('./create-key.js')
      createKey(options, context)
    })
}

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
