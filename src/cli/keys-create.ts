import { type Command, Option } from 'commander'
import { API_SCOPES } from '../handlers/api-key.js'
import { commandGroup, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import type { KeysCreateOptions } from './create-key.js'

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
