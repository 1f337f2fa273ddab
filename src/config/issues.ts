import type { z } from 'zod'
import type { Issue } from '../errors.js'

export type Path = readonly PropertyKey[]

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

/** Says what is wrong with a value without ever showing the value, which may be a secret. */
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

/** One issue per problem: an unknown key each, and of alternatives the one that was meant. */
export function toIssues(error: z.ZodError): Issue[] {
  return error.issues.flatMap((issue) => flatten(issue, []))
}

function flatten(issue: z.core.$ZodIssue, parent: Path): Issue[] {
  const path = [...parent, ...issue.path]
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({ path: formatPath([...path, key]), message: 'is not a known key' }))
    case 'invalid_union': {
      const meant = issue.errors.find((branch) => branch.every((inner) => inner.path.length > 0))
      return (
        meant?.flatMap((inner) => flatten(inner, path)) ?? [
          { path: formatPath(path), message: issue.message },
        ]
      )
    }
    case 'invalid_key':
      return issue.issues.map((inner) => ({ path: formatPath(path), message: inner.message }))
    default:
      return [{ path: formatPath(path), message: issue.message }]
  }
}
