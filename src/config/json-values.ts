import type { Path } from './issues.js'

/** The object at a path of whatever was read; an empty one where there is none. */
export function objectAt(value: unknown, path: Path): object {
  const found = valueAt(value, path)
  return typeof found === 'object' && found !== null ? found : {}
}

/** The value at a path of whatever was read; undefined where there is none. */
export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (node, key) => (typeof node === 'object' && node !== null ? Reflect.get(node, key) : undefined),
    value,
  )
}
