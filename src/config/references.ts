import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type { Issue } from '../errors.js'
import type { Path, Problem } from '../handlers/problem.js'
import { replaceWithin, shown, toIssue } from './problems.js'

export interface ResolveOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile: (path: string) => string
  /** The base of relative file paths: the config file's folder. */
  readonly folder: string
  /** Whether secrets and addresses may be missing until they are read: see `throwWhereRead`. */
  readonly mayLackSecrets: boolean
}

/** `isMissing`: the reference is well-formed, but its variable or file does not exist. */
type Lookup = { readonly text: string } | { readonly problem: string; readonly isMissing: boolean }

// Anything that opens like a reference counts as one: a misspelt one must not become a literal secret.
const REFERENCE = /\$\{([^}]*)(\}?)/g

/**
 * Replaces `${env:NAME}` and `${file:/path}` in every text of a JSON value, keys excepted. No message contains the
 * content of a variable or a file.
 */
export function resolveReferences(value: unknown, options: ResolveOptions) {
  /** Unresolved references, whose text stays as it is. */
  const problems: Problem[] = []
  /** The placeholder for each missing text, and why it is missing. */
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
    const placeholder = options.mayLackSecrets && isMissing ? placeholderFor(path) : null
    if (first === undefined || placeholder === null) {
      problems.push(...unresolved)
      return resolved
    }
    missing.set(placeholder, toIssue(first))
    return placeholder
  }
  const resolve = (node: unknown, path: Path) => (typeof node === 'string' ? resolveText(node, path) : node)
  return { value: replaceWithin(value, resolve), problems, missing }
}

/**
 * Makes every placeholder in a config throw when it is read, so that nothing signs, verifies or calls with one by
 * mistake. The rest of the config works as usual.
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

const SECRETS: readonly unknown[] = ['secret', 'secrets', 'botToken']
const ADDRESSES: readonly unknown[] = ['url', 'apiUrl', 'baseUrl']

/** A valid but unguessable secret or address; null for all other settings. */
function placeholderFor(path: Path): string | null {
  if (path[0] !== 'endpoints' && path[0] !== 'sync' && path[0] !== 'provider') return null
  const key = path.findLast((part) => typeof part === 'string')
  const unknown = randomBytes(24).toString('hex')
  if (key === 'apiKey') return `sk_${String(path[1])}_${unknown}`
  if (SECRETS.includes(key)) return `whsec_${unknown}`
  return ADDRESSES.includes(key) ? `https://${unknown}.invalid` : null
}

/** What the names of variables and files look like: a secret may have been pasted in their place. */
const VARIABLE = /^[A-Z_][A-Z0-9_]{0,63}$/
const FILE = /^((\.{0,2}\/)[\w./ @-]*|[\w-]+(\/[\w-]+)*\.[a-z]{1,5})$/

function lookUp(reference: string, { env, readFile, folder }: ResolveOptions): Lookup {
  const [, kind, name] = /^(env|file):(.+)$/.exec(reference) ?? []
  if (kind === undefined || name === undefined) {
    const problem = 'has a "${" that is not a reference: write env:NAME or file:/path between its braces'
    return { problem, isMissing: false }
  }
  if (kind === 'env') {
    const variable = shown(name, VARIABLE)
    const text = env[name]
    if (text !== undefined) return usable(text, `names the variable ${variable}, whose value`)
    const problem = `names the variable ${variable}, which is not set in this process's environment`
    return { problem, isMissing: true }
  }
  const file = shown(name, FILE)
  try {
    const text = readFile(resolve(folder, name)).replace(/\r?\n$/, '')
    return usable(text, `names the file ${file}, which`)
  } catch (error) {
    return { problem: `names the file ${file}, which can't be read (${reasonOf(error)})`, isMissing: true }
  }
}

/** Refuses templates that nobody has filled in and texts with lost bytes: others could know such a secret. */
function usable(text: string, what: string): Lookup {
  if (text.includes('${')) return { problem: `${what} holds a "\${" that nothing replaces`, isMissing: false }
  if (text.includes('\ufffd')) return { problem: `${what} is not UTF-8 text`, isMissing: false }
  return { text }
}

/** The system's short error code (`ENOENT`); its message could contain more than a path. */
export function reasonOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
}
