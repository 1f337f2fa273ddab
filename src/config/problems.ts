import type { Issue } from '../errors.js'
import type { Path, Problem } from '../handlers/problem.js'

const PLAIN_KEY = /^[\w$-]+$/

/** The names of settings, misspelt ones too, and of the variables that override them. */
const SETTING = /^(\$?[A-Za-z]{1,24}|LATCHKEY_[A-Z_]+|__proto__)$/
/** Of endpoints and outbound webhooks. */
export const NAME = /^[a-z0-9-]{1,64}$/
export const ALMOST_NAME = /^([a-z0-9-]{1,64}|[A-Za-z]{1,24})$/
const PRODUCT_ID = /^[\w.:-]{1,40}$/

const SECRET = /(^|\/)(whsec|[prs]k|lk)_/i

/** `['endpoints', 'v3', 'secrets', 0]` reads `endpoints.v3.secrets[0]`. For people: see `shown`. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, part, place) => {
    if (typeof part === 'number') return `${text}[${part}]`
    const key = shown(String(part), formOfKeys(path.slice(0, place)))
    if (!PLAIN_KEY.test(key)) return `${text}[${JSON.stringify(key)}]`
    return text === '' ? key : `${text}.${key}`
  }, '')
}

function formOfKeys(section: Path): RegExp {
  switch (section.join('.')) {
    case 'endpoints':
    case 'sync.webhooks':
      return ALMOST_NAME
    case 'products':
      return PRODUCT_ID
    default:
      return SETTING
  }
}

/**
 * A text that somebody wrote where a name belongs, for a message. All but its beginning is hidden unless it has the
 * form of such a name: it may be a secret in the wrong place.
 */
export function shown(text: string, form: RegExp): string {
  if (form.test(text) && !SECRET.test(text)) return text
  const some = text.slice(0, Math.min(3, Math.floor(text.length / 4)))
  return `${some}… (${text.length} characters)`
}

/** The same text for the same path, and for no other. It may hold a secret. */
export function placeOf(path: Path): string {
  return JSON.stringify(path)
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
      return placeOf(index === -1 ? path : path.slice(0, index + 1))
    }),
  )
  return replaceWithin(value, (node, path) => (wrong.has(placeOf(path)) ? null : node)) as Usable<T> | null
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
