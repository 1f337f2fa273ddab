import {
  addApiKey,
  createApiKey,
  endingAt,
  isoTime,
  keyNameSchema,
  type NewApiKey,
  removeApiKey,
  rotateApiKey,
} from '../config/api-keys.js'
import { readConfigText } from '../config/load.js'
import { locateConfig } from '../config/locate.js'
import { replaceFile } from '../config/write-file.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { ApiScope } from '../handlers/api-key.js'
import type { Environment } from '../provider/event.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import type { GivenCommand } from './command.js'
import { type CliContext, loadNamedConfig, type SharedOptions } from './context.js'
import { withApi } from './find-api.js'
import { linesText } from './text.js'

type Show = GivenCommand<Record<never, never>>['show']

interface CreateOptions extends SharedOptions {
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
export async function createKey(options: CreateOptions, context: CliContext, show: Show): Promise<void> {
  const { expires } = options
  const made = createApiKey({
    name: requireName(options.name),
    scopes: [...new Set(options.scope)],
    environments: [...new Set(options.environment)],
    createdAt: isoTime(context.now()),
    ...endingAt(expires),
  })
  if (options.print) {
    show(made, () => printedText(made))
    return
  }
  const { path, pending } = await changeConfig(options, context, (text, path) => ({
    text: addApiKey(text, path, made.entry),
  }))
  show({ ...made, path, inUse: pending === null }, () =>
    linesText([
      `API key ${JSON.stringify(made.entry.name)} (shown only now): ${made.key}`,
      `Added to ${path}. ${useText(pending)}`,
    ]),
  )
  // A config with problems elsewhere says nothing of its endpoints.
  const { endpoints = null } = (await loadNamedConfig(options, context).catch(() => null))?.config ?? {}
  for (const environment of made.entry.environments) {
    if (endpoints?.every((endpoint) => endpoint.environment !== environment))
      context.err(
        `note: no ${environment} endpoint is configured, so there is nothing ${environment} to ask about yet\n`,
      )
  }
}

interface RotateOptions extends SharedOptions {
  readonly expires: number | undefined
  readonly grace: number | undefined
}

const GRACE_MS = 86_400_000

/** Makes another key of the same name, shows it once, and keeps the old one valid for a while. */
export async function rotateKey(
  name: string,
  { expires: expiresAt, grace: graceMs = GRACE_MS, ...options }: RotateOptions,
  context: CliContext,
  show: Show,
): Promise<void> {
  const now = context.now()
  const { key, oldEndsAt, path, pending } = await changeConfig(options, context, (text, path) =>
    rotateApiKey(text, path, name, { now, graceMs, expiresAt }),
  )
  const oldIsValidUntil = oldEndsAt > now ? isoTime(oldEndsAt) : null
  show({ name, key, oldIsValidUntil, path, inUse: pending === null }, () =>
    linesText([
      `New API key ${JSON.stringify(name)} (shown only now): ${key}`,
      oldIsValidUntil === null
        ? 'The old key is not valid any more.'
        : `The old key is valid until ${oldIsValidUntil}.`,
      `Changed in ${path}. ${useText(pending)}`,
    ]),
  )
}

/** Removes a key, and the one before its last rotation. */
export async function revokeKey(
  name: string,
  options: SharedOptions,
  context: CliContext,
  show: Show,
): Promise<void> {
  const { path, pending } = await changeConfig(options, context, (text, path) => ({
    text: removeApiKey(text, path, name),
  }))
  show({ name, path, inUse: pending === null }, () =>
    linesText([`Removed ${JSON.stringify(name)} from ${path}. ${useText(pending)}`]),
  )
}

/** Changes the config file, and has a running daemon read it. `pending`: why it does not use the change yet, or null. */
async function changeConfig<Changed extends { readonly text: string }>(
  options: SharedOptions,
  context: CliContext,
  change: (text: string, path: string) => Changed,
): Promise<Changed & { readonly path: string; readonly pending: string | null }> {
  const { env, folder } = context
  const { path } = locateConfig({ option: options.config, env, folder })
  const changed = change(readConfigText(path), path)
  writeConfig(path, changed.text)
  try {
    await withApi(options, context, (api) => api.send('POST', '/reload'), 'changes')
    return { ...changed, path, pending: null }
  } catch (error) {
    if (!isLatchkeyError(error)) throw error
    return { ...changed, path, pending: error.code === 'daemon_unreachable' ? NO_DAEMON : error.message }
  }
}

const NO_DAEMON = 'no daemon runs'

function useText(pending: string | null): string {
  if (pending === null) return 'The running daemon uses this now.'
  return pending === NO_DAEMON
    ? 'A daemon uses this once it starts.'
    : `Not in use yet: ${pending}. Run \`latchkey reload\` once that is right.`
}

function writeConfig(path: string, text: string): void {
  try {
    replaceFile(path, text)
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const todo = 'change api.keys there by hand: `latchkey keys create --print` shows an entry'
    const message = `${path} can't be written: ${refusalText(error)}; ${todo}`
    throw new LatchkeyError('output_failed', message, { cause: error })
  }
}

function requireName(name: string): string {
  const checked = keyNameSchema.safeParse(name)
  if (!checked.success) throw new LatchkeyError('usage', '--name must be a name without control characters')
  return checked.data
}

function printedText({ key, entry }: NewApiKey): string {
  return `API key (shown only now): ${key}\nIts entry for api.keys in the config file:\n${JSON.stringify(entry, null, 2)}\n`
}
