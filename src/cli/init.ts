import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createFirstConfig, FIRST_EVENT } from '../config/first-start.js'
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
  const program = programIn(context.env)
  const named = options.config === undefined ? '' : ` --config ${options.config}`
  show({ path, key: keyFile === null ? key : null, keyFile }, () =>
    [
      created,
      'Start the daemon, and send it a first event from a second terminal:',
      `  ${program} serve${named}`,
      `  ${program} ${FIRST_EVENT}${named}`,
      '',
    ].join('\n'),
  )
}

/** What a shell runs: `latchkey` where it is installed for all, as in a container. npm's own folders are not on its path. */
function programIn({ PATH = '' }: CliContext['env']): string {
  const folders = PATH.split(delimiter).filter((folder) => !folder.endsWith(join('node_modules', '.bin')))
  return folders.some((folder) => folder !== '' && existsSync(join(folder, 'latchkey')))
    ? 'latchkey'
    : 'npx latchkey'
}

/** @throws {LatchkeyError} `config_invalid` if there is such a file, or the address is wrong; `output_failed` */
export function makeFirstConfig(path: string, { env, isTerminal }: CliContext) {
  const { LATCHKEY_HOST: host, LATCHKEY_PORT: port } = env
  const schema = packageFile('config.schema.json')
  try {
    return createFirstConfig({ path, isTerminal, host, port, schema, program: programIn(env) })
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const todo = 'start in a writable folder, or name a config with --config'
    const message = `${path} can't be created: ${refusalText(error)}: ${todo}`
    throw new LatchkeyError('output_failed', message, { cause: error })
  }
}
