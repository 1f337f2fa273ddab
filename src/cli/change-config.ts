/* Commands that change the config file, and have a running daemon take the change over. */

import { changeConfigFile } from '../config/change-file.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { socketFileOf } from '../handlers/api-key.js'
import type { StatusJson } from '../handlers/control.js'
import { isStoreServed } from '../store/sqlite/file.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import { type Api, apiAtSocket } from './api.js'
import {
  type CliContext,
  configPathOf,
  databaseFileIn,
  loadNamedConfig,
  type SharedOptions,
} from './context.js'
import { isListening } from './find-api.js'

interface Meaning {
  /** What the change is about, in the plural. */
  readonly what: 'keys' | 'endpoints'
  /** How to do it by hand if the file can't be written. */
  readonly byHand: string
  /** Whether the daemon has what this file holds: it may have been started with another. */
  readonly isTaken: (api: Api, path: string) => Promise<boolean>
}

/** Changes the config file, and has a running daemon read it again. */
export async function changeConfig<Changed extends { readonly config: unknown }>(
  { options, context }: { readonly options: SharedOptions; readonly context: CliContext },
  change: (config: unknown) => Changed,
  meaning: Meaning,
) {
  const path = configPathOf(options, context)
  const changed = await changeConfigFile(path, context.env, change).catch((cause: unknown) => {
    if (!isSystemRefusal(cause)) throw cause
    const message = `${path} can't be written: ${refusalText(cause)}; ${meaning.byHand}`
    throw new LatchkeyError('output_failed', message, { cause })
  })
  return { ...changed, path, use: await useIn(options, context, path, meaning) }
}

/**
 * Whether a running daemon uses what the file holds now, as text to follow what has changed in it. `failure`: why it
 * does not, to be thrown once the change is shown; null also if none runs.
 */
async function useIn(options: SharedOptions, context: CliContext, path: string, { what, isTaken }: Meaning) {
  try {
    const api = await localDaemon(options, context)
    if (api === null) return { isNow: false, text: AT_NEXT_START, failure: null }
    await api.send('POST', '/reload')
    if (!(await isTaken(api, path))) {
      const { config } = await api.get<StatusJson>('/status')
      throw new LatchkeyError('daemon_failed', `its ${what} come from another file, ${config}`)
    }
    return { isNow: true, text: ' The running daemon uses this now.', failure: null }
  } catch (error) {
    if (!isLatchkeyError(error)) throw error
    const todo = 'Correct that and run `latchkey reload`, or restart the daemon'
    const message = `${path} is changed, but the running daemon may still use the old ${what}: ${error.message.replace(/\.$/, '')}. ${todo}.`
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
