/* What is wrong with a value that somebody wrote, in plain English: in the config, or in a request. */

import type { z } from 'zod'

export type Path = readonly PropertyKey[]

/** A problem with a value, or a probable mistake, and its place. */
export interface Problem {
  readonly path: Path
  readonly message: string
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
  boolean: 'true or false',
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
