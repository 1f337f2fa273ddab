import { resolve } from 'node:path'
import type { Issue } from '../errors.js'
import { formatPath, type Path } from './issues.js'

/** Where references are looked up. Neither a variable's nor a file's content ever enters a message. */
export interface ReferenceSources {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile: (path: string) => string
  /** What relative file paths are relative to: the config file's folder. */
  readonly folder: string
}

export interface Resolved {
  readonly value: unknown
  /** A text with a reference that can't be resolved stays as it is, and is reported here. */
  readonly issues: readonly Issue[]
}

type Lookup = { readonly text: string } | { readonly problem: string }

// Anything that opens like a reference counts as one: a misspelt one must not become a literal secret.
const REFERENCE = /\$\{([^}]*)(\}?)/g

/** Replaces `${env:NAME}` and `${file:/path}` in every text of a JSON value, keys excepted. */
export function resolveReferences(value: unknown, sources: ReferenceSources): Resolved {
  const issues: Issue[] = []

  const walk = (node: unknown, path: Path): unknown => {
    if (typeof node === 'string') return resolveText(node, path)
    if (Array.isArray(node)) return node.map((element, index) => walk(element, [...path, index]))
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([key, child]) => [key, walk(child, [...path, key])]))
  }

  const resolveText = (text: string, path: Path): string =>
    text.replace(REFERENCE, (whole, name: string, closing: string) => {
      const found = lookUp(closing === '' ? '' : name, sources)
      if ('text' in found) return found.text
      issues.push({ path: formatPath(path), message: found.problem })
      return whole
    })

  return { value: walk(value, []), issues }
}

function lookUp(reference: string, { env, readFile, folder }: ReferenceSources): Lookup {
  const [, kind, name] = /^(env|file):(.+)$/.exec(reference) ?? []
  if (kind === undefined || name === undefined) {
    return { problem: 'has a "${" that is no reference: write env:NAME or file:/path between its braces' }
  }
  if (kind === 'env') {
    const text = env[name]
    if (text !== undefined) return { text }
    return { problem: `names the variable ${name}, which is not set in this process's environment` }
  }
  try {
    return { text: readFile(resolve(folder, name)).replace(/\r?\n$/, '') }
  } catch (error) {
    return { problem: `names the file ${name}, which can't be read (${reasonOf(error)})` }
  }
}

/** The system's short name for a failure (`ENOENT`); its message could hold more than a path. */
export function reasonOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
}
