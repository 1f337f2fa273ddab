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
