import type { Config } from '../config/schema.js'
import { isLatchkeyError, issueLine } from '../errors.js'
import { API_SCOPES } from '../handlers/api-key.js'
import type { KeysJson } from '../handlers/control.js'
import { command, DAEMON, flag, instantFrom, parseGrace, parser, required, someOf, value } from './command.js'
import { loadNamedConfig } from './context.js'
import { linesText, listText } from './text.js'

/** Epoch milliseconds; never is infinite. */
const parseExpiry = parser('a duration such as 90d, a future time, or never', (text, { now }) => {
  const at = text === 'never' ? Number.POSITIVE_INFINITY : instantFrom(text, now(), 1)
  return at !== null && at > now() ? at : null
})

const expires = (byDefault: string) =>
  value('<when>', `when the key expires: 90d from now, a time, or never (default: ${byDefault})`, parseExpiry)
const KEY_NAME = { name: 'the name of the key' }

export const configCommands = [
  command('keys create', {
    about: 'create an API key and add its hash to the config file',
    examples: ['keys create --name app --scope read --environment live --expires 90d'],
    options: {
      name: required(value('<name>', 'the name of the key in logs')),
      scope: required(someOf('<scopes...>', 'what the key may do', API_SCOPES)),
      environment: required(someOf('<names...>', 'which environments the key may see', ['live', 'sandbox'])),
      expires: expires('never'),
      print: flag('print the key and its config entry without changing the config file'),
    },
    run: async (given) => (await import('./keys.js')).createKey(given),
  }),
  command('keys list', {
    about: 'show the API keys: what they may do, when they expire and when they were last used',
    options: DAEMON,
    async run({ options, context, show }) {
      const { withApi } = await import('./find-api.js')
      const answer = await withApi(options, context, (api) => api.get<KeysJson>('/keys')).catch(
        async (error: unknown) => {
          if (!isLatchkeyError(error, 'store_missing')) throw error
          return neverUsed((await loadNamedConfig(options, context)).config)
        },
      )
      show(answer, listText(answer.keys, keyCells, 'no keys: create one with `latchkey keys create`'))
    },
  }),
  command('keys rotate <name>', {
    about: 'create a new key with the same name; the old one stays valid for a while',
    examples: ['keys rotate app', 'keys rotate app --grace none --expires 90d'],
    arguments: KEY_NAME,
    options: {
      grace: value('<duration>', 'how long the old key stays valid, or none (default: 24h)', parseGrace),
      expires: expires('when the old key does'),
    },
    run: async (given) => (await import('./keys.js')).rotateKey(given),
  }),
  command('keys revoke <name>', {
    about: 'remove an API key from the config file and from the running daemon',
    examples: ['keys revoke app'],
    arguments: KEY_NAME,
    run: async (given) => (await import('./keys.js')).revokeKey(given),
  }),
  command('config check', {
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
  }),
]

function keyCells(key: KeysJson['keys'][number]): readonly string[] {
  const { name, scopes, environments, expiresAt, isReplaced, lastUsedAt } = key
  return [
    isReplaced ? `${name} (old)` : name,
    scopes.join(','),
    environments.join(','),
    expiresAt === null ? 'no end' : `ends ${expiresAt}`,
    lastUsedAt === null ? 'never used' : `used ${lastUsedAt}`,
  ]
}

/** The keys of a config that no daemon has used yet. */
async function neverUsed({ apiKeys }: Config): Promise<KeysJson> {
  const { keysAnswer } = await import('../handlers/control.js')
  const { toJson } = await import('../handlers/answers.js')
  return toJson(keysAnswer, { keys: apiKeys.map((key) => ({ ...key, lastUsedAt: null })) })
}
