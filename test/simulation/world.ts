/* A world from a seed: the payments service, the daemon, and those who live with both. */

import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import { migrate } from '../../src/store/migrate.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { createFolder } from '../setup/create-folder.js'
import { mixed, reseed } from './machine/chance.js'
import { restartNetwork } from './machine/network.js'
import { provideThreads } from './machine/threads.js'
import { pass, restartTime, settled, until } from './machine/time.js'
import { restartTrace } from './machine/trace.js'
import { createDaemonHost, type DaemonHost, type LogLine } from './parts/daemon.js'
import { DAEMON_THREADS } from './parts/daemon-threads.js'
import { type SimulatedService, startSimulatedService } from './parts/service.js'

export const DAEMON = 'http://127.0.0.1:4680'
const OPERATOR_KEY = 'lk_simulated_operator'
const SECRETS = { v3: 'whsec_simulated_current', v2: 'whsec_simulated_legacy' } as const
export const MINUTE_MS = 60_000

const keyEntry = (name: string, key: string, more: object) => ({
  name,
  hash: `sha256:${createHash('sha256').update(key).digest('hex')}`,
  ...more,
})

/** What is wrong: a promise was broken, or something happened that never may. */
export class BrokenPromise extends Error {
  readonly promise: string

  constructor(promise: string, what: string) {
    super(`${promise}: ${what}`)
    this.promise = promise
    this.name = 'BrokenPromise'
  }
}

export interface World {
  readonly daemon: DaemonHost
  readonly service: SimulatedService
  readonly config: Record<string, unknown>
  /** What must never happen, as it is found. */
  readonly broken: BrokenPromise[]
  /** Asks the daemon as its operator. Status 0: it could not be reached. */
  operate(words: string, body?: unknown): Promise<{ readonly status: number; readonly json: Json }>
  end(): Promise<void>
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked at by what each step expects of them.
export type Json = any

let template: string | null = null

/** Made once: what each world begins with. */
export async function prepareWorlds(): Promise<() => void> {
  const folder = createFolder()
  template = join(folder, 'template.db')
  const db = openDatabase(template, { readOnly: false })
  const done = migrate(db).then(() => db.destroy())
  await until('the schema', done, MINUTE_MS)
  provideThreads(DAEMON_THREADS)
  return () => rmSync(folder, { recursive: true, force: true })
}

export async function createWorld(seed: number, heard: ((line: string) => void) | null): Promise<World> {
  restartTime()
  restartNetwork()
  restartTrace(heard)
  reseed(mixed(seed, 3))
  const folder = createFolder()
  const broken: BrokenPromise[] = []
  const config: Record<string, unknown> = {
    server: { port: 4680 },
    endpoints: {
      sandbox: { environment: 'sandbox', secrets: [SECRETS.v3] },
      'sandbox-legacy': { environment: 'sandbox', secrets: [SECRETS.v2] },
    },
    api: {
      keys: [
        keyEntry('operator', OPERATOR_KEY, {
          scopes: ['read', 'write', 'events', 'metrics', 'admin'],
          environments: ['live', 'sandbox'],
        }),
      ],
    },
    policy: EXAMPLE_POLICY,
    log: { level: 'info' },
  }
  const onLog = ({ level, msg, ...fields }: LogLine): void => {
    if (level !== 'error' && level !== 'fatal') return
    if (EXPECTED_ERRORS.some((one) => one.test(msg))) return
    broken.push(new BrokenPromise('nothing unexpected is logged', `${msg} ${JSON.stringify(fields)}`))
  }
  const report = (error: unknown): void =>
    void broken.push(new BrokenPromise('nothing fails', error instanceof Error ? `${error.stack}` : String(error)))
  if (template === null) throw new Error('prepareWorlds comes first')
  const daemon = createDaemonHost({ folder, template, config: () => config, onLog, onFailure: report })
  const endpoints = [
    { url: `${DAEMON}/webhooks/sandbox`, secret: SECRETS.v3, generation: 'v3' },
    { url: `${DAEMON}/webhooks/sandbox-legacy`, secret: SECRETS.v2, generation: 'v2' },
  ] as const
  const service = await until(
    'the start of the service',
    startSimulatedService('sandbox', seed, endpoints, report),
    MINUTE_MS,
  )
  await until('the start of the daemon', daemon.start(), MINUTE_MS)

  return {
    daemon,
    service,
    config,
    broken,
    async operate(words, body) {
      const [method = '', path = ''] = words.split(' ')
      try {
        const response = await fetch(`${DAEMON}${path}`, {
          method,
          headers: { Authorization: `Bearer ${OPERATOR_KEY}`, 'Content-Type': 'application/json' },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        })
        const text = await response.text()
        return { status: response.status, json: text === '' ? null : JSON.parse(text) }
      } catch {
        return { status: 0, json: null }
      }
    },
    async end() {
      daemon.end()
      await until('the end of the service', service.sandbox.stop(), MINUTE_MS)
      // What libraries keep between requests ends by itself: the next world finds nothing of it.
      await pass(10 * MINUTE_MS)
      await settled()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What a daemon says where the world gives it reason to. */
const EXPECTED_ERRORS: readonly RegExp[] = []
