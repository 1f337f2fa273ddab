import { type LoadedConfig, loadConfig } from '../../src/config/load.js'
import { type Issue, LatchkeyError } from '../../src/errors.js'
import { rewriteConfig, temporaryFolder } from '../world.js'

/** Writes a config file, from a value or from its text, and answers with its path. */
export function writeConfig(config: unknown, folder = temporaryFolder()): string {
  return rewriteConfig(folder, config)
}

type Env = Readonly<Record<string, string>>

export function load(config: unknown, env: Env = {}): LoadedConfig {
  return loadConfig({ path: writeConfig(config), env })
}

/** The problems that the config is refused for, as `path: message`. Fails if it is accepted. */
export function problems(config: unknown, env: Env = {}): string[] {
  return refusal(() => load(config, env)).issues.map(line)
}

export function warnings(config: unknown): string[] {
  return load(config).warnings.map(line)
}

/** The expected failure that `action` throws. Fails if it throws nothing, or something else. */
export function refusal(action: () => unknown): LatchkeyError {
  try {
    action()
  } catch (error) {
    if (error instanceof LatchkeyError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

function line({ path, message }: Issue): string {
  return `${path}: ${message}`
}

export function endpoint(environment: 'live' | 'sandbox', ...secrets: unknown[]) {
  return { environment, secrets }
}

/** The reference to a variable, as a config writes it. */
export function fromEnv(name: string): string {
  return `\${env:${name}}`
}

/** The reference to a file, as a config writes it. */
export function fromFile(path: string): string {
  return `\${file:${path}}`
}

/* What a right config holds, to be changed in one place. */

export const SECRET = 'whsec_0123456789abcdef'
export const KEY = {
  name: 'app',
  hash: `sha256:${'0A'.repeat(32)}`,
  scopes: ['read'],
  environments: ['live'],
}
export const URL = 'https://app.example/hooks'
export const OUT = `whsec_${'A'.repeat(32)}`
export const ROLE = { adapter: 'discord', guildId: '1', roleId: '2' }
export const GROUP = { adapter: 'telegram', groupId: '-100' }
export const BOTS = { discord: { botToken: 'd' }, telegram: { botToken: 't' } }

export const v3 = (...secrets: unknown[]) => ({ endpoints: { v3: endpoint('live', ...secrets) } })
export const grantOnCard = (...types: unknown[]) => ({ policy: { grantOn: { card: types } } })
