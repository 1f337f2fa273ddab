import { addApiKey, createApiKey, keyNameSchema, type NewApiKey } from '../config/api-keys.js'
import { readConfigText } from '../config/load.js'
import { locateConfig } from '../config/locate.js'
import { replaceFile } from '../config/write-file.js'
import { LatchkeyError } from '../errors.js'
import type { ApiScope } from '../handlers/api-key.js'
import type { Environment } from '../provider/event.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import type { GivenCommand } from './command.js'
import { type CliContext, loadNamedConfig, type SharedOptions } from './context.js'

interface KeysCreateOptions extends SharedOptions {
  readonly name: string
  readonly scope: readonly ApiScope[]
  readonly environment: readonly Environment[]
  readonly print: true | undefined
}

/**
 * Makes a key, adds its hash to the config file unless it is only to be printed, and shows the key once.
 * @throws {LatchkeyError} `usage`, `config_missing`, `config_invalid`, `output_failed`
 */
export async function createKey(
  options: KeysCreateOptions,
  context: CliContext,
  show: GivenCommand<Record<never, never>>['show'],
): Promise<void> {
  const { env, folder, err } = context
  const made = createApiKey({
    name: requireName(options.name),
    scopes: [...new Set(options.scope)],
    environments: [...new Set(options.environment)],
  })
  if (options.print) {
    show(made, () => printedText(made))
    return
  }
  const { path } = locateConfig({ option: options.config, env, folder })
  const text = readConfigText(path)
  writeConfig(path, addApiKey(text, path, made.entry))
  show({ ...made, path }, () => addedText(made, path))
  // A config with problems elsewhere says nothing of its endpoints.
  const { endpoints = null } = (await loadNamedConfig(options, context).catch(() => null))?.config ?? {}
  for (const environment of made.entry.environments) {
    if (endpoints?.every((endpoint) => endpoint.environment !== environment))
      err(
        `note: no ${environment} endpoint is configured, so there is nothing ${environment} to ask about yet\n`,
      )
  }
}

function writeConfig(path: string, text: string): void {
  try {
    replaceFile(path, text)
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const message = `${path} can't be written: ${refusalText(error)}; --print shows the entry, to be put there by hand`
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

function addedText({ key, entry }: NewApiKey, path: string): string {
  return [
    `API key ${JSON.stringify(entry.name)} (shown only now): ${key}`,
    `Added to ${path}. A running daemon uses it after \`latchkey reload\``,
    '',
  ].join('\n')
}
