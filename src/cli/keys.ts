import {
  addApiKey,
  createApiKey,
  endingAt,
  isoTime,
  keyNameSchema,
  removeApiKey,
  rotateApiKey,
} from '../config/api-keys.js'
import { changeConfigFile } from '../config/change-file.js'
import { locateConfig } from '../config/locate.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { type ApiScope, socketFileOf } from '../handlers/api-key.js'
import type { KeysJson, StatusJson } from '../handlers/control.js'
import type { Environment } from '../provider/event.js'
import { isStoreServed } from '../store/sqlite/file.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import { type Api, apiAtSocket } from './api.js'
import type { GivenCommand } from './command.js'
import { type CliContext, databaseFileIn, loadNamedConfig, type SharedOptions } from './context.js'
import { isListening } from './find-api.js'
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

/**
 * Changes the keys in the config file, and has a running daemon read it again.
 * @param isMeant whether the keys that it accepts then are those of this file: it may have been started with another
 */
async function changeKeys<Changed extends { readonly config: unknown }>(
  { options, context }: Given,
  change: (config: unknown) => Changed,
  isMeant: (keys: Keys) => boolean,
) {
  const { env, folder } = context
  const { path } = locateConfig({ option: options.config, env, folder })
  const changed = await changeConfigFile(path, env, change).catch((cause: unknown) => {
    if (!isSystemRefusal(cause)) throw cause
    const todo = 'change api.keys there by hand: `latchkey keys create --print` shows an entry'
    const message = `${path} can't be written: ${refusalText(cause)}; ${todo}`
    throw new LatchkeyError('output_failed', message, { cause })
  })
  return { ...changed, path, use: await useIn(options, context, path, isMeant) }
}

type Keys = KeysJson['keys']

/**
 * Whether a running daemon uses what the file holds now, as text to follow what has changed in it. `failure`: why it
 * does not, to be thrown once the change is shown; null also if none runs.
 */
async function useIn(
  options: SharedOptions,
  context: CliContext,
  path: string,
  isMeant: (keys: Keys) => boolean,
) {
  try {
    const api = await localDaemon(options, context)
    if (api === null) return { isNow: false, text: AT_NEXT_START, failure: null }
    await api.send('POST', '/reload')
    if (!isMeant((await api.get<{ readonly keys: Keys }>('/keys')).keys)) {
      const { config } = await api.get<StatusJson>('/status')
      throw new LatchkeyError('daemon_failed', `its keys come from another file, ${config}`)
    }
    return { isNow: true, text: ' The running daemon uses this now.', failure: null }
  } catch (error) {
    if (!isLatchkeyError(error)) throw error
    const todo = 'Correct that and run `latchkey reload`, or restart the daemon'
    const message = `${path} is changed, but the running daemon may still use the old keys: ${error.message.replace(/\.$/, '')}. ${todo}.`
    const failure = new LatchkeyError('daemon_failed', message, { cause: error, issues: error.issues })
    return { isNow: false, text: ' The running daemon does not use this yet.', failure }
  }
}

const AT_NEXT_START = ' No daemon is running here: this takes effect at the next start.'

/** A daemon that hangs must not keep the command from saying what it has changed. */
const ANSWERS_WITHIN_MS = 10_000

/**
 * The daemon of this machine that serves the configured database; null: there is none.
 * @throws {LatchkeyError} `daemon_failed` if there is one, and it can't be asked
 */
async function localDaemon(options: SharedOptions, context: CliContext): Promise<Api | null> {
  // The daemon runs, and must be told, even if the file has a problem elsewhere.
  const database = await loadNamedConfig(options, context).then(
    ({ config }) => config.database,
    () => ({ file: databaseFileIn(options, context), postgres: undefined }),
  )
  const socket = socketFileOf(database.file)
  if (await isListening(socket))
    return apiAtSocket(socket, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) })
  if (database.postgres !== undefined || !isStoreServed(database.file)) return null
  const message = `a process has the database ${database.file} open, but does not answer at ${socket}`
  throw new LatchkeyError('daemon_failed', message)
}

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
