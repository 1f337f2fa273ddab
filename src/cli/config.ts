import { InvalidArgumentError } from 'commander'
import { DURATION_PATTERN, parseDuration } from '../config/duration.js'
import type { Config } from '../config/schema.js'
import { isLatchkeyError, issueLine } from '../errors.js'
import { API_SCOPES } from '../handlers/api-key.js'
import type { KeysJson } from '../handlers/control.js'
import { command, flag, instantIn, required, someOf, value } from './command.js'
import { type CliContext, loadNamedConfig } from './context.js'
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

/** A duration from now or a time, in epoch milliseconds; never is infinite. */
function parseExpiry(text: string, { now }: CliContext): number {
  if (text === 'never') return Number.POSITIVE_INFINITY
  const at = DURATION_PATTERN.test(text) ? now() + parseDuration(text) : instantIn(text)
  if (at !== null && at > now()) return at
  throw new InvalidArgumentError('Expected a duration such as 90d, a future time, or never.')
}

/** Milliseconds. */
function parseGrace(text: string): number {
  if (text === 'none') return 0
  if (DURATION_PATTERN.test(text)) return parseDuration(text)
  throw new InvalidArgumentError('Expected a duration such as 24h, or none.')
}

const expires = (byDefault: string) =>
  value('<when>', `when the key expires: 90d from now, a time, or never (default: ${byDefault})`, parseExpiry)
const KEY_NAME = { name: 'the name of the key' }

/** `latchkey keys create`: makes a key, keeps its hash in the config file and shows the key once. */
const keysCreateCommand = command('keys create', {
  about: 'create an API key and add its hash to the config file',
  examples: ['keys create --name app --scope read --environment live --expires 90d'],
  options: {
    name: required(value('<name>', 'the name of the key in logs')),
    scope: someOf('<scopes...>', 'what the key may do', API_SCOPES),
    environment: someOf('<names...>', 'which environments the key may see', ['live', 'sandbox']),
    expires: expires('never'),
    print: flag('print the key and its config entry without changing the config file'),
  },
  async run({ options, context, show }) {
    const { createKey } = await import('./keys.js')
    await createKey(options, context, show)
  },
})

/** `latchkey keys list`: every key that the daemon accepts, without its secret. */
const keysListCommand = command('keys list', {
  about: 'show the API keys: what they may do, when they expire and when they were last used',
  examples: ['keys list'],
  options: {
    url: value('<url>', 'the daemon to ask, with the key in LATCHKEY_API_KEY (default: the local one)'),
  },
  async run({ options, context, show }) {
    const { withApi } = await import('./find-api.js')
    const answer = await withApi(options, context, (api) => api.get<KeysJson>('/keys')).catch(
      async (error: unknown) => {
        if (!isLatchkeyError(error, 'store_missing')) throw error
        return neverUsed((await loadNamedConfig(options, context)).config)
      },
    )
    show(answer, (paint) =>
      answer.keys.length === 0
        ? 'no keys: create one with `latchkey keys create`\n'
        : table(
            answer.keys.map(({ name, scopes, environments, expiresAt, isReplaced, lastUsedAt }) => [
              isReplaced ? `${name} (old)` : name,
              scopes.join(','),
              environments.join(','),
              expiresAt === null ? 'no end' : `ends ${expiresAt}`,
              lastUsedAt === null ? 'never used' : `used ${lastUsedAt}`,
            ]),
            paint,
          ),
    )
  },
})

/** The keys of a config that no daemon has used yet. */
async function neverUsed({ apiKeys }: Config): Promise<KeysJson> {
  const { keysAnswer } = await import('../handlers/control.js')
  const { toJson } = await import('../handlers/answers.js')
  return toJson(keysAnswer, { keys: apiKeys.map((key) => ({ ...key, lastUsedAt: null })) })
}

/** `latchkey keys rotate <name>`: another key of the same name; the old one stays valid for a while. */
const keysRotateCommand = command('keys rotate <name>', {
  about: 'create a new key with the same name; the old one stays valid for a while',
  examples: ['keys rotate app', 'keys rotate app --grace none --expires 90d'],
  arguments: KEY_NAME,
  options: {
    grace: value('<duration>', 'how long the old key stays valid, or none (default: 24h)', parseGrace),
    expires: expires('when the old key does'),
  },
  async run({ args: [name = ''], options, context, show }) {
    const { rotateKey } = await import('./keys.js')
    await rotateKey(name, options, context, show)
  },
})

/** `latchkey keys revoke <name>`: removes a key at once. */
const keysRevokeCommand = command('keys revoke <name>', {
  about: 'remove an API key from the config file and from the running daemon',
  examples: ['keys revoke app'],
  arguments: KEY_NAME,
  async run({ args: [name = ''], options, context, show }) {
    const { revokeKey } = await import('./keys.js')
    await revokeKey(name, options, context, show)
  },
})

export const configCommands = [
  keysCreateCommand,
  keysListCommand,
  keysRotateCommand,
  keysRevokeCommand,
  configCheckCommand,
]
