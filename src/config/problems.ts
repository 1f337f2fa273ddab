import type { z } from 'zod'
import type { Issue } from '../errors.js'

export type Path = readonly PropertyKey[]

/** A problem in the config, or a probable mistake, and its place. */
export interface Problem {
  readonly path: Path
  readonly message: string
}

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

/** Describes the problem with a value, and never shows the value, which may be a secret. */
export const describeIssue: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? 'is required'
        : `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.join(', ')}`
    case 'too_small':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `must be at least ${issue.minimum}`
        : 'is empty'
    case 'too_big':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `must be at most ${issue.maximum}`
        : `is longer than ${issue.maximum}`
    default:
      return undefined
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a text',
  int: 'a whole number',
  number: 'a number',
  object: 'an object',
  record: 'an object',
  array: 'a list',
}

/** One problem each: per unknown key, and for alternatives only the intended one. */
export function problemsIn(error: z.ZodError): Problem[] {
  return error.issues.flatMap((issue) => flatten(issue, []))
}

function flatten(issue: z.core.$ZodIssue, parent: Path): Problem[] {
  const path = [...parent, ...issue.path]
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({ path: [...path, key], message: 'is not a known key' }))
    case 'invalid_union': {
      const meant = issue.errors.find((branch) => branch.every((inner) => inner.path.length > 0))
      return meant?.flatMap((inner) => flatten(inner, path)) ?? [{ path, message: issue.message }]
    }
    case 'invalid_key':
      return issue.issues.map(({ message }) => ({ path, message }))
    default:
      return [{ path, message: issue.message }]
  }
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
