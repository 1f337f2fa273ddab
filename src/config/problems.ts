import type { Issue } from '../errors.js'
import type { Path, Problem } from '../handlers/problem.js'

const PLAIN_KEY = /^[\w$-]+$/

/** `['endpoints', 'v3', 'secrets', 0]` reads `endpoints.v3.secrets[0]`. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    const key = String(part)
    if (!PLAIN_KEY.test(key)) return `${text}[${JSON.stringify(key)}]`
    return text === '' ? key : `${text}.${key}`
  }, '')
}

export function toIssue({ path, message }: Problem): Issue {
  return { path: formatPath(path), message }
}

/**
 * The valid parts of a file of the form `T` with problems: null in place of each wrong value, and of each list element
 * with a problem in it. Keys may be missing.
 */
export type Usable<T> = T extends readonly (infer Element)[]
  ? readonly (Element | null)[]
  : T extends object
    ? { readonly [Key in keyof T]?: Usable<T[Key]> | null }
    : T

/** The valid part of a value in which a schema found these problems. */
export function usablePart<T>(value: unknown, problems: readonly Problem[]): Usable<T> | null {
  const wrong = new Set(
    problems.map(({ path }) => {
      const index = path.findIndex((part) => typeof part === 'number')
      return formatPath(index === -1 ? path : path.slice(0, index + 1))
    }),
  )
  return replaceWithin(value, (node, path) => (wrong.has(formatPath(path)) ? null : node)) as Usable<T> | null
}

/** Replaces every value of a JSON value by the result of `replace`, outer values first. */
export function replaceWithin(
  value: unknown,
  replace: (node: unknown, path: Path) => unknown,
  path: Path = [],
): unknown {
  const node = replace(value, path)
  if (Array.isArray(node))
    return node.map((element, index) => replaceWithin(element, replace, [...path, index]))
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(
    Object.entries(node).map(([key, child]) => [key, replaceWithin(child, replace, [...path, key])]),
  )
}
