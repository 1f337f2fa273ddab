import { addApiKey, createApiKey, keyNameSchema, type NewApiKey } from '../config/api-keys.js'
import { parseJsonText } from '../config/json-text.js'
import { readConfigText } from '../config/load.js'
import { locateConfig } from '../config/locate.js'
import { replaceFile } from '../config/write-file.js'
import { LatchkeyError } from '../errors.js'
import type { ApiScope } from '../handlers/api-key.js'
import type { Environment } from '../provider/event.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import type { GivenCommand } from './command.js'
import type { CliContext, SharedOptions } from './context.js'

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
export function createKey(
  options: KeysCreateOptions,
  { env, folder, err }: CliContext,
  show: GivenCommand<Record<never, never>>['show'],
): void {
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
  for (const environment of made.entry.environments) {
    if (!mayReceive(text, path, environment))
      err(
        `note: no ${environment} endpoint is configured, so there is nothing ${environment} to ask about yet\n`,
      )
  }
}

/** Whether an endpoint is of this environment. One written as a reference may be. */
function mayReceive(text: string, path: string, environment: Environment): boolean {
  const { endpoints } = parseJsonText(text, path).value as {
    readonly endpoints?: Readonly<Record<string, { readonly environment?: unknown } | null>> | null
  }
  return Object.values(endpoints ?? {}).some((endpoint) => {
    const given = endpoint?.environment
    return given === environment || (typeof given === 'string' && given.includes('${'))
  })
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
