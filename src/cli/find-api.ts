import { connect } from 'node:net'
import type { Config } from '../config/schema.js'
import { LatchkeyError } from '../errors.js'
import { MAX_SOCKET_PATH_BYTES, socketFileOf } from '../handlers/api-key.js'
import { http } from '../node-http.js'
import { AS_ITS_USER, isOfAnotherUser, refusalText } from '../system-refusal.js'
import {
  type Api,
  type ApiOptions,
  apiAtSocket,
  createApi,
  isNobody,
  type Transport,
  transportToSocket,
  transportToUrl,
} from './api.js'
import { type CliContext, databaseFileIn, defaultEnvironment, loadNamedConfig } from './context.js'

/** `asks`: the store alone can answer, too. The others need a running daemon. */
export type CommandKind = 'asks' | 'asks the daemon' | 'changes'

/**
 * Calls `use` with the API: of the daemon at `--url`; of the one that serves the configured database, at its local
 * socket; or, if none runs and the command only asks, with its routes that ask, over the store, which is only read.
 * @throws {LatchkeyError} `usage` for a wrong address, or without a key; `daemon_unreachable`; `store_missing`,
 * `schema_too_old`, `schema_too_new`
 */
export async function withApi<T>(
  options: ApiOptions,
  context: CliContext,
  use: (api: Api) => Promise<T>,
  kind: CommandKind = 'asks',
): Promise<T> {
  const { url, environment } = options
  if (url !== undefined) return use(createApi(transportToUrl(url, context), { config: null, environment }))
  const config = await loadNamedConfig(options, context).then(
    (loaded) => loaded.config,
    (error: unknown) => ({ error }),
  )
  if ('error' in config) {
    // A running daemon is there all the same, and a file that it can't read again is a reason to ask it.
    const socketPath = socketFileOf(databaseFileIn(options, context))
    if (kind === 'asks' || !(await isListening(socketPath))) throw config.error
    return use(createApi(transportToSocket(socketPath), { config: null, environment }))
  }
  const known = { config, environment: environment ?? defaultEnvironment(config.endpoints) }
  const socketPath = socketFileOf(config.database.file)
  if (await isListening(socketPath)) return use(createApi(transportToSocket(socketPath), known))
  if (kind !== 'asks') throw await noDaemon(config.database.file)
  return overStore(config, context, (transport) => use(createApi(transport, known)))
}

/** The API of the daemon that serves the configured database. */
export function localApi(config: Config): Api {
  return apiAtSocket(socketFileOf(config.database.file), { config })
}

/** The error for a socket that can't exist: its path is too long or leads through a file. */
const IMPOSSIBLE: readonly unknown[] = ['ENAMETOOLONG', 'EINVAL', 'ENOTDIR']

/** @throws {LatchkeyError} `daemon_failed` if it can't be found out */
export function isListening(socketPath: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (isNobody(error) || IMPOSSIBLE.includes(error.code)) return resolve(false)
      const todo = isOfAnotherUser(error) ? `: ${AS_ITS_USER}, or name the daemon with --url` : ''
      const message = `the daemon's socket ${socketPath} can't be used, ${refusalText(error)}${todo}`
      reject(new LatchkeyError('daemon_failed', message, { cause: error }))
    })
  })
}

/** @param file the database */
async function noDaemon(file: string): Promise<LatchkeyError> {
  const socket = socketFileOf(file)
  const { isStoreServed } = await import('../store/sqlite/file.js')
  const isTooLong = Buffer.byteLength(socket) > MAX_SOCKET_PATH_BYTES
  const message = isTooLong
    ? `the path of ${socket} is too long for a socket: name the daemon with --url`
    : isStoreServed(file)
      ? `a process has the database ${file} open, but does not answer at ${socket}: it is starting or stopping`
      : `no daemon is running at ${socket}: start one with \`latchkey serve\`, or use --url for one elsewhere`
  return new LatchkeyError('daemon_unreachable', message)
}

/** Answers inside this command, from a store that no daemon serves, or one elsewhere. */
async function overStore<T>(
  config: Config,
  { now: clock, err }: CliContext,
  work: (transport: Transport) => Promise<T>,
): Promise<T> {
  const { createLogger } = await import('../log.js')
  const { openAskingApi } = await import('../daemon/asking.js')
  const asking = await openAskingApi(config, { clock, log: createLogger('error', { write: err }) })
  try {
    return await work({
      request: http.request,
      options: { createConnection: asking.connect },
      prefix: '',
      intro: () => '',
      failed: (error) => error,
      confirm: asking.assertUndisturbed,
    })
  } finally {
    await asking.close()
  }
}
