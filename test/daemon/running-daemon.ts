import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { beforeAll, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import type { DaemonDeps } from '../../src/daemon/open.js'
import { type Daemon, startDaemon } from '../../src/daemon.js'
import { createLogger } from '../../src/log.js'
import { signBody } from '../../src/provider/signature.js'
import type { Database } from '../../src/store/schema.js'
import { createFolder } from '../setup/create-folder.js'
import { whenFileEnds } from '../setup/file-ends.js'
import { openKeptThread } from '../setup/kept-threads.js'
import { putNewStoreUnlessBegun } from '../setup/new-store.js'
import { ENGINE, keyEntry, openStoreAt, postgresAt } from '../world.js'

/** Noon, and half a second: between two whole seconds, so that no rounding hides. */
export const NOW = Date.parse('2026-03-01T12:00:00.500Z')

export const LIVE_SECRET = 'whsec_live_0123456789'
export const SANDBOX_SECRET = 'whsec_sandbox_0123456789'
/** May do everything. */
export const API_KEY = 'lk_test_key'

const SCOPES = ['read', 'write', 'events', 'metrics', 'admin']

const CONFIG = {
  server: { port: 0 },
  endpoints: {
    live: { environment: 'live', secrets: [LIVE_SECRET] },
    sandbox: { environment: 'sandbox', secrets: [SANDBOX_SECRET] },
  },
  api: {
    keys: [{ ...keyEntry('operator', API_KEY), scopes: SCOPES, environments: ['live', 'sandbox'] }],
  },
}

export interface RunningDaemon extends Daemon {
  readonly folder: string
  readonly databaseFile: string
  /** Everything logged so far, a line each. */
  readonly logged: () => readonly Record<string, unknown>[]
  /** Has it take over another config, as SIGHUP does. */
  readonly readAgain: (config: Record<string, unknown>) => Promise<unknown>
  readonly setNow: (now: number) => void
  /** Reads the database file from outside. */
  readonly stored: <T>(query: (db: Kysely<Database>) => Promise<T>) => Promise<T>
  readonly restart: () => Promise<RunningDaemon>
}

export interface DaemonOptions {
  readonly config?: Record<string, unknown>
  readonly folder?: string
  /** Whether it makes its store itself; by default it finds an empty one. */
  readonly isNew?: boolean
  /** What runs it, as `latchkey serve` does. */
  readonly control?: DaemonDeps['control']
  /** How it waits before it asks the payments service again. */
  readonly sleep?: DaemonDeps['sleep']
  /** What the clock shows at first, in epoch milliseconds; `running`: it is the machine's own. */
  readonly now?: number | 'running'
  /** Takes what is to be done once nobody needs the daemon any more; by default the end of the test is that. */
  readonly atEnd?: (end: () => unknown) => void
}

/** The whole daemon on a free port and a database file of its own, at a clock that stands still. */
export async function runDaemon({
  config: given = {},
  atEnd = (end) => onTestFinished(async () => void (await end())),
  folder = temporaryFolder(atEnd),
  now: start = NOW,
  isNew = false,
  control,
  sleep,
}: DaemonOptions = {}): Promise<RunningDaemon> {
  const file = join(folder, 'data', 'latchkey.db')
  const config =
    ENGINE === 'postgres' ? { database: { url: (await postgresAt(file, atEnd)).url }, ...given } : given
  if (ENGINE === 'sqlite' && !isNew) await putNewStoreUnlessBegun(file)
  let now = start === 'running' ? null : start
  const lines: string[] = []
  const path = join(folder, 'config.json')
  const load = (from: Record<string, unknown>) =>
    loadConfig({ path, env: {}, readFile: () => JSON.stringify({ ...CONFIG, ...from }) }).config
  const loaded = load(config)
  const log = createLogger('debug', { write: (line) => void lines.push(line) })
  const daemon = await startDaemon(loaded, {
    clock: () => now ?? Date.now(),
    log,
    openThread: openKeptThread,
    ...(control && { control }),
    ...(sleep && { sleep }),
  })
  atEnd(() => daemon.stop())
  return {
    ...daemon,
    folder,
    databaseFile: file,
    logged: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    readAgain: (next) => daemon.reload(load(next)),
    setNow: (instant) => {
      now = instant
    },
    async stored(query) {
      const db = await openStoreAt(file, { readOnly: true }, atEnd)
      try {
        return await query(db)
      } finally {
        await db.destroy()
      }
    },
    async restart() {
      await daemon.stop()
      return runDaemon({ config, folder, atEnd, now: now ?? 'running', ...(sleep && { sleep }) })
    },
  }
}

function temporaryFolder(atEnd: (end: () => unknown) => void): string {
  const folder = createFolder()
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * One daemon for all tests of a file, or of a group, to be asked for within them: each then needs customers and
 * events of its own.
 */
export function sharedDaemon(options: Omit<DaemonOptions, 'atEnd'> = {}): () => RunningDaemon {
  const atEnd = whenFileEnds()
  let daemon: RunningDaemon | undefined
  beforeAll(async () => {
    daemon = await runDaemon({ ...options, atEnd })
  })
  return () => {
    if (daemon === undefined) throw new Error('asked for before the tests began')
    return daemon
  }
}

export interface SendOptions {
  readonly endpoint?: string
  readonly secret?: string
  /** Unix seconds, as text: sent and signed as it is. */
  readonly timestamp?: string
  readonly headers?: Record<string, string>
}

/** Sends a body as the provider does: signed, with its three headers. */
export function send(
  daemon: Pick<Daemon, 'webhooksUrl'>,
  body: string | Buffer,
  options: SendOptions = {},
): Promise<Response> {
  const { endpoint = 'live', timestamp = String(Math.floor(NOW / 1000)) } = options
  const secret = options.secret ?? (endpoint === 'sandbox' ? SANDBOX_SECRET : LIVE_SECRET)
  const bytes = Buffer.from(body)
  return fetch(`${daemon.webhooksUrl}/webhooks/${endpoint}`, {
    method: 'POST',
    body: new Uint8Array(bytes),
    headers: {
      'Content-Type': 'application/json',
      'X-Webhook-Timestamp': timestamp,
      'X-Webhook-Signature': signBody(secret, timestamp, bytes),
      ...options.headers,
    },
  })
}

/** Asks the API, with the key of the config above unless `headers` bring another. */
export function ask(daemon: Daemon, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${daemon.url}${path}`, { headers: { Authorization: `Bearer ${API_KEY}`, ...headers } })
}

export interface Answered {
  readonly status: number
  // Whatever the API says: each test knows what it asked for.
  readonly json: Readonly<Record<string, unknown>>
}

/** Has the API do something, with the same key; answers with its JSON. */
export async function call(
  daemon: Daemon,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const response = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, json: (await response.json()) as Answered['json'] }
}
