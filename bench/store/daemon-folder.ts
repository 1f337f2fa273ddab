import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '../../src/config/load.js'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import type { Policy } from '../../src/entitlements/policy.js'
import { ENDPOINT, SECRET } from '../sample/signing.js'

export const API_KEY = 'lk_bench_key'

/** Where a daemon of the benchmarks lives: its config, and its database beside. */
export interface DaemonFolder {
  readonly folder: string
  readonly configFile: string
  readonly databaseFile: string
  readonly policy: Policy
}

const CONFIG = {
  server: { host: '127.0.0.1', port: 0 },
  endpoints: { [ENDPOINT]: { environment: 'live', secrets: [SECRET] } },
  api: {
    keys: [
      {
        name: 'bench',
        hash: `sha256:${createHash('sha256').update(API_KEY).digest('hex')}`,
        scopes: ['read', 'admin'],
        environments: ['live', 'sandbox'],
      },
    ],
  },
  policy: EXAMPLE_POLICY,
}

/**
 * Writes the config that a first start makes, but for its secrets and its port, which is any free one.
 * @param given the address of the database, or all that the config says of it
 */
export function createDaemonFolder(
  folder: string,
  given: string | object = 'sqlite:./data/latchkey.db',
): DaemonFolder {
  mkdirSync(folder, { recursive: true })
  const configFile = join(folder, 'config.json')
  const database = typeof given === 'string' ? { url: given } : given
  writeFileSync(configFile, `${JSON.stringify({ ...CONFIG, database }, null, 2)}\n`)
  const { config } = loadConfig({ path: configFile, env: {} })
  return { folder, configFile, databaseFile: config.database.file, policy: config.policy }
}
