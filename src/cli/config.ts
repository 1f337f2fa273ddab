import { issueLine } from '../errors.js'
import { API_SCOPES } from '../handlers/api-key.js'
import { command, flag, required, someOf, value } from './command.js'
import { loadNamedConfig } from './context.js'
import { linesText, table } from './text.js'

/** `latchkey config check`: whether the daemon would start with this config. */
const configCheckCommand = command('config check', {
  about: 'check the config file, and show every problem at once',
  examples: ['config check --config /etc/latchkey/config.json'],
  async run({ options, context, show }) {
    const loaded = await loadNamedConfig(options, context, 'all')
    const { path, endpoints } = loaded.config
    const { findExpired } = await import('../config/endpoints.js')
    const warnings = [...loaded.warnings, ...findExpired(endpoints, context.now())]
    show({ ok: true, path, warnings }, () =>
      linesText([`ok: ${path}`, ...warnings.map((warning) => `warning: ${issueLine(warning)}`)]),
    )
  },
})

/** `latchkey keys create`: makes a key, keeps its hash in the config file and shows the key once. */
const keysCreateCommand = command('keys create', {
  about: 'make an API key and add its hash to the config file',
  examples: ['keys create --name app --scope read --environment live'],
  options: {
    name: required(value('<name>', 'the name of the key in logs')),
    scope: someOf('<scopes...>', 'what the key may do', API_SCOPES),
    environment: someOf('<names...>', 'which environments the key may see', ['live', 'sandbox']),
    print: flag('print the key and its config entry, and leave the config file alone'),
  },
  async run({ options, context, show }) {
    const { createKey } = await import('./create-key.js')
    await createKey(options, context, show)
  },
})

/** `latchkey keys list`: the scopes of every key. The keys themselves are not stored. */
const keysListCommand = command('keys list', {
  about: 'show the names, scopes and environments of the API keys',
  examples: ['keys list'],
  async run({ options, context, show }) {
    const { config } = await loadNamedConfig(options, context)
    const keys = config.apiKeys.map(({ name, scopes, environments }) => ({ name, scopes, environments }))
    show({ keys }, () =>
      keys.length === 0
        ? 'no keys: make one with `latchkey keys create`\n'
        : table(
            keys.map(({ name, scopes, environments }) => [name, scopes.join(','), environments.join(',')]),
          ),
    )
  },
})

export const configCommands = [keysCreateCommand, keysListCommand, configCheckCommand]
