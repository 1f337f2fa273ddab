import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Issue, LatchkeyError } from '../errors.js'
import { findConflicts, findSharedPorts } from './checks.js'
import { describeIssue, toIssues } from './issues.js'
import { findDuplicateKeys, findReservedKeys, parseJsonText } from './json-text.js'
import { readOverrides } from './overrides.js'
import { reasonOf, resolveReferences, throwWhereRead } from './references.js'
import { configSchema } from './schema.js'
import { toConfig } from './to-config.js'
import type { Config } from './types.js'
import { findWarnings } from './warnings.js'

export interface LoadConfigOptions {
  readonly path: string
  /** Where `${env:NAME}` and the `LATCHKEY_*` overrides are looked up. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile?: (path: string) => string
  /**
   * Whether every reference has to resolve (the default), or those of secrets and addresses only where something reads
   * them: that then throws `config_invalid`, as this would have. For commands, which seldom need any.
   */
  readonly secrets?: 'all' | 'when read'
}

export interface LoadedConfig {
  readonly config: Config
  /** What is allowed, and seldom meant. */
  readonly warnings: readonly Issue[]
}

/**
 * Loads the config file. Throws `config_missing` where there is none, and `config_invalid` with every
 * problem at once: each names its path, and none shows a value, which may be a secret.
 */
export function loadConfig({
  path,
  env,
  readFile = readText,
  secrets = 'all',
}: LoadConfigOptions): LoadedConfig {
  const absolute = resolve(path)
  const { value, root } = parseJsonText(readConfigText(absolute, readFile), absolute)
  const resolved = resolveReferences(value, {
    env,
    readFile,
    folder: dirname(absolute),
    mayLackSecrets: secrets === 'when read',
  })
  const parsed = configSchema.safeParse(resolved.value, { error: describeIssue })
  const { overrides, issues: overrideIssues } = readOverrides(env)

  const certain = [...findReservedKeys(root), ...resolved.issues]
  const known = new Set(certain.map((issue) => issue.path))
  const problems = [
    ...findDuplicateKeys(root),
    ...certain,
    // A value whose reference failed, or whose name can't be, is known to be wrong already.
    ...[
      ...(parsed.error ? toIssues(parsed.error) : []),
      ...findConflicts(resolved.value),
      ...findSharedPorts(resolved.value, overrides),
    ].filter((issue) => !known.has(issue.path)),
    ...overrideIssues,
  ]
  if (problems.length > 0 || !parsed.success) throw invalidConfig(absolute, problems)

  const config = toConfig(parsed.data, overrides, absolute)
  const unchecked = [...resolved.missing.values()].map(({ path, message }) => ({
    path,
    message: `${message}, and so is not checked`,
  }))
  const warnings = [...findWarnings(config), ...unchecked]
  throwWhereRead(config, resolved.missing, (issue) => invalidConfig(absolute, [issue]))
  return { config, warnings }
}

/** The file as it is. Throws `config_missing`, or `config_invalid` if it can't be read. */
export function readConfigText(path: string, readFile = readText): string {
  try {
    return readFile(path)
  } catch (error) {
    const reason = reasonOf(error)
    if (reason === 'ENOENT') throw new LatchkeyError('config_missing', `there is no config file ${path}`)
    throw new LatchkeyError('config_invalid', `the config file ${path} can't be read (${reason})`, {
      cause: error,
    })
  }
}

function invalidConfig(path: string, issues: readonly Issue[]): LatchkeyError {
  const count = issues.length === 1 ? 'a problem' : `${issues.length} problems`
  return new LatchkeyError('config_invalid', `the config file ${path} has ${count}`, { issues })
}

function readText(path: string): string {
  return readFileSync(path, 'utf8')
}
