import { createFirstConfig, FIRST_EVENT, type FirstConfig } from '../config/first-start.js'
import { locateConfig } from '../config/locate.js'
import { LatchkeyError } from '../errors.js'
import { packageFile } from '../package-file.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import type { GivenCommand } from './command.js'
import type { CliContext } from './context.js'

/** Writes a first config and its API key, and shows what to run next. Never overwrites a file. */
export function init({ options, context, show }: GivenCommand<Record<never, never>>): void {
  const { path } = locateConfig({ option: options.config, env: context.env, folder: context.folder })
  const { key, keyFile, created } = makeFirstConfig(path, context)
  const named = options.config === undefined ? '' : ` --config ${options.config}`
  show({ path, key: keyFile === null ? key : null, keyFile }, () =>
    [
      created,
      'Start the daemon, and send it a first event from a second terminal:',
      `  npx latchkey serve${named}`,
      `  npx latchkey ${FIRST_EVENT}${named}`,
      '',
    ].join('\n'),
  )
}

/** @throws {LatchkeyError} `config_invalid` if there is such a file; `output_failed` */
export function makeFirstConfig(path: string, { env, isTerminal }: CliContext): FirstConfig {
  const { LATCHKEY_HOST: host, LATCHKEY_PORT: port } = env
  const schema = packageFile('config.schema.json')
  try {
    return createFirstConfig({ path, isTerminal, host, port, schema })
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const todo = 'start in a folder that can be written, or name a config with --config'
    const message = `${path} can't be created: ${refusalText(error)}: ${todo}`
    throw new LatchkeyError('output_failed', message, { cause: error })
  }
}
