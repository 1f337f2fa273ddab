import {
  addApiKey,
  createApiKey,
  endingAt,
  isoTime,
  keyNameSchema,
  removeApiKey,
  rotateApiKey,
} from '../config/api-keys.js'
import { LatchkeyError } from '../errors.js'
import type { ApiScope } from '../handlers/api-key.js'
import type { KeysJson } from '../handlers/control.js'
import type { Environment } from '../provider/event.js'
import { changeConfig } from './change-config.js'
import type { GivenCommand } from './command.js'
import { loadNamedConfig, type SharedOptions } from './context.js'
import { linesText } from './text.js'

type Given<Options = unknown> = GivenCommand<Record<never, never>, SharedOptions & Options>

interface CreateOptions {
  readonly name: string
  readonly scope: readonly ApiScope[]
  readonly environment: readonly Environment[]
  readonly expires: number | undefined
  readonly print: true | undefined
}

/**
 * Makes a key, adds its hash to the config file unless it is only to be printed, and shows the key once.
 * @throws {LatchkeyError} `usage`, `config_missing`, `config_invalid`, `output_failed`
 */
export async function createKey(given: Given<CreateOptions>): Promise<void> {
  const { options, context, show } = given
  const made = createApiKey({
    name: requireName(options.name),
    scopes: [...new Set(options.scope)],
    environments: [...new Set(options.environment)],
    createdAt: isoTime(context.now()),
    ...endingAt(options.expires),
  })
  const { key, entry } = made
  if (options.print) return show(made, () => printedText(made))
  const change = (config: unknown) => ({ config: addApiKey(config, entry) })
  const { path, use } = await changeKeys(given, change, hasKey(entry.name, entry.createdAt))
  show({ ...made, path, inUse: use.isNow }, () =>
    linesText([
      `API key ${JSON.stringify(entry.name)} (shown only now): ${key}`,
      `Added to ${path}.${use.text}`,
    ]),
  )
  // A config with problems elsewhere says nothing of its endpoints.
  const { endpoints = null } = (await loadNamedConfig(options, context).catch(() => null))?.config ?? {}
  for (const environment of entry.environments) {
    if (endpoints?.every((endpoint) => endpoint.environment !== environment))
      context.err(`note: no ${environment} endpoint is configured, so there is no ${environment} data yet\n`)
  }
  if (use.failure !== null) throw use.failure
}

interface RotateOptions {
  readonly expires: number | undefined
  readonly grace: number | undefined
}

const GRACE_MS = 86_400_000

/** Makes another key of the same name, shows it once, and keeps the old one valid for a while. */
export async function rotateKey(given: Given<RotateOptions>): Promise<void> {
  const { expires: expiresAt, grace: graceMs = GRACE_MS } = given.options
  const [name = ''] = given.args
  const now = given.context.now()
  const change = (config: unknown) => rotateApiKey(config, name, { now, graceMs, expiresAt })
  const { key, oldEndsAt, ends, path, use } = await changeKeys(given, change, hasKey(name, isoTime(now)))
  const oldIsValidUntil = oldEndsAt > now ? isoTime(oldEndsAt) : null
  given.show({ name, key, expiresAt: ends, oldIsValidUntil, path, inUse: use.isNow }, () =>
    linesText([
      `New API key ${JSON.stringify(name)} (shown only now): ${key}`,
      ends !== null && `The new key expires at ${ends}.`,
      `The old key is ${oldIsValidUntil === null ? 'no longer valid' : `valid until ${oldIsValidUntil}`}.`,
      `Changed in ${path}.${use.text}`,
    ]),
  )
  if (use.failure !== null) throw use.failure
}

/** Removes a key, and the one before its last rotation. */
export async function revokeKey(given: Given): Promise<void> {
  const [name = ''] = given.args
  const change = (config: unknown) => ({ config: removeApiKey(config, name) })
  const { path, use } = await changeKeys(given, change, (keys) => keys.every((key) => key.name !== name))
  given.show(
    { name, path, inUse: use.isNow },
    () => `Removed ${JSON.stringify(name)} from ${path}.${use.text}\n`,
  )
  if (use.failure !== null) throw use.failure
}

/** @param isMeant whether the keys that a running daemon accepts then are those of this file */
function changeKeys<Changed extends { readonly config: unknown }>(
  given: Given,
  change: (config: unknown) => Changed,
  isMeant: (keys: Keys) => boolean,
) {
  return changeConfig(given, change, {
    what: 'keys',
    byHand: 'change api.keys there by hand: `latchkey keys create --print` shows an entry',
    isTaken: async (api) => isMeant((await api.get<{ readonly keys: Keys }>('/keys')).keys),
  })
}

type Keys = KeysJson['keys']

/** Whether the daemon accepts the key of this name that was made then. */
function hasKey(name: string, createdAt = '') {
  const isIt = (key: Keys[number]): boolean =>
    key.name === name && !key.isReplaced && Date.parse(key.createdAt ?? '') === Date.parse(createdAt)
  return (keys: Keys): boolean => keys.some(isIt)
}

function requireName(name: string): string {
  const checked = keyNameSchema.safeParse(name)
  if (!checked.success) throw new LatchkeyError('usage', '--name must be a name without control characters')
  return checked.data
}

function printedText({ key, entry }: ReturnType<typeof createApiKey>): string {
  return `API key (shown only now): ${key}\nIts entry for api.keys in the config file:\n${JSON.stringify(entry, null, 2)}\n`
}
