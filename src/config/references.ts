import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type { Issue } from '../errors.js'
import { type Path, type Problem, replaceWithin, toIssue } from './problems.js'

export interface ResolveOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile: (path: string) => string
  /** What relative file paths are relative to: the config file's folder. */
  readonly folder: string
  /** Whether secrets and addresses may be missing until something reads them: see `throwWhereRead`. */
  readonly mayLackSecrets: boolean
}

export interface Resolved {
  readonly value: unknown
  /** A text with a reference that can't be resolved stays as it is, and is reported here. */
  readonly problems: readonly Problem[]
  /** What stands in for each text that may be missing, and why it is. */
  readonly missing: ReadonlyMap<string, Issue>
}

/** `isMissing`: the reference itself is right, and what it names is not there. */
type Lookup = { readonly text: string } | { readonly problem: string; readonly isMissing: boolean }

// Anything that opens like a reference counts as one: a misspelt one must not become a literal secret.
const REFERENCE = /\$\{([^}]*)(\}?)/g

/**
 * Replaces `${env:NAME}` and `${file:/path}` in every text of a JSON value, keys excepted. Neither a variable's nor a
 * file's content ever enters a message.
 */
export function resolveReferences(value: unknown, options: ResolveOptions): Resolved {
  const problems: Problem[] = []
  const missing = new Map<string, Issue>()

  const resolveText = (text: string, path: Path): string => {
    const unresolved: Problem[] = []
    let isMissing = true
    const resolved = text.replace(REFERENCE, (whole, name: string, closing: string) => {
      const found = lookUp(closing === '' ? '' : name, options)
      if ('text' in found) return found.text
      unresolved.push({ path, message: found.problem })
      isMissing &&= found.isMissing
      return whole
    })
    const [first] = unresolved
    const standIn = options.mayLackSecrets && isMissing ? standInFor(path) : null
    if (first === undefined || standIn === null) {
      problems.push(...unresolved)
      return resolved
    }
    missing.set(standIn, toIssue(first))
    return standIn
  }

  const resolved = replaceWithin(value, (node, path) =>
    typeof node === 'string' ? resolveText(node, path) : node,
  )
  return { value: resolved, problems, missing }
}

/**
 * Has every stand-in in a config throw where it is read, so that nothing signs, verifies or calls with one by mistake.
 * The rest of the config is as usable as ever.
 */
export function throwWhereRead(
  node: object,
  missing: ReadonlyMap<string, Issue>,
  failure: (issue: Issue) => Error,
): void {
  for (const [key, value] of Object.entries(node)) {
    const issue = missing.get(value)
    if (issue !== undefined) {
      const get = () => {
        throw failure(issue)
      }
      Object.defineProperty(node, key, { enumerable: true, get })
    } else if (typeof value === 'object' && value !== null) throwWhereRead(value, missing, failure)
  }
}

const SECRETS: readonly unknown[] = ['secret', 'secrets', 'botToken', 'apiKey']
const ADDRESSES: readonly unknown[] = ['url', 'apiUrl', 'baseUrl']

/** A text that passes for a secret or an address, and that nobody can know; null for what else a config holds. */
function standInFor(path: Path): string | null {
  if (path[0] !== 'endpoints' && path[0] !== 'sync' && path[0] !== 'provider') return null
  const key = path.findLast((part) => typeof part === 'string')
  const unknown = randomBytes(24).toString('hex')
  if (SECRETS.includes(key)) return `whsec_${unknown}`
  return ADDRESSES.includes(key) ? `https://${unknown}.invalid` : null
}

function lookUp(reference: string, { env, readFile, folder }: ResolveOptions): Lookup {
  const [, kind, name] = /^(env|file):(.+)$/.exec(reference) ?? []
  if (kind === undefined || name === undefined) {
    const problem = 'has a "${" that is no reference: write env:NAME or file:/path between its braces'
    return { problem, isMissing: false }
  }
  if (kind === 'env') {
    const text = env[name]
    if (text !== undefined) return usable(text, `names the variable ${name}, whose value`)
    const problem = `names the variable ${name}, which is not set in this process's environment`
    return { problem, isMissing: true }
  }
  try {
    const text = readFile(resolve(folder, name)).replace(/\r?\n$/, '')
    return usable(text, `names the file ${name}, which`)
  } catch (error) {
    return { problem: `names the file ${name}, which can't be read (${reasonOf(error)})`, isMissing: true }
  }
}

/** What nobody has filled in, or has lost its bytes on the way, would be a secret that others know. */
function usable(text: string, what: string): Lookup {
  if (text.includes('${')) return { problem: `${what} holds a "\${" that nothing replaces`, isMissing: false }
  if (text.includes('\ufffd')) return { problem: `${what} is not UTF-8 text`, isMissing: false }
  return { text }
}

/** The system's short name for a failure (`ENOENT`); its message could hold more than a path. */
export function reasonOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
}
