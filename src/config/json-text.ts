import { visit } from 'jsonc-parser'
import { LatchkeyError } from '../errors.js'
import type { Path, Problem } from '../handlers/problem.js'

/** No config needs more than ten levels, and the recursion must end before the stack overflows. */
const DEEPEST = 64

/** A record would drop such a key, or reach what every object inherits. */
const NO_NAMES: readonly string[] = ['__proto__', 'constructor', 'prototype']

/**
 * Reads the JSON text of the config file `path`. Throws `config_invalid` with the file and the place of the first
 * error, and without quoting the text: `JSON.parse` would quote a secret.
 */
export function parseJsonText(text: string, path: string) {
  /** Keys given twice in one object, of which `JSON.parse` silently keeps the last. */
  const duplicates: Problem[] = []
  /** Keys that are forbidden in every object. */
  const reserved: Problem[] = []
  /** The keys so far of each open object; null for an open list. */
  const open: (Set<string> | null)[] = []
  let expected = 'a value'

  const refuse = (why: string, line: number, character: number, then: string): never => {
    const place = `line ${line + 1}, column ${character + 1}`
    throw new LatchkeyError('config_invalid', `the config file ${path} is ${why} at ${place}${then}`)
  }
  const begin = (keys: Set<string> | null, line: number, character: number): void => {
    if (open.length === DEEPEST) refuse(`nested more than ${DEEPEST} levels deep`, line, character, '')
    open.push(keys)
    expected = keys ? 'a key in quotation marks' : 'a value'
  }
  const afterValue = (): void => {
    const keys = open.at(-1)
    expected = keys === undefined ? 'nothing more' : `"," or "${keys ? '}' : ']'}"`
  }
  const end = (_offset: number, length: number): void => {
    // The text has ended inside an object or list.
    if (length === 0) return
    open.pop()
    afterValue()
  }
  if (text.startsWith('\ufeff')) {
    const why = 'begins with a byte-order mark: save it as UTF-8 without one'
    throw new LatchkeyError('config_invalid', `the config file ${path} ${why}`)
  }
  visit(
    text,
    {
      onObjectBegin: (_offset, _length, line, character) => begin(new Set(), line, character),
      onArrayBegin: (_offset, _length, line, character) => begin(null, line, character),
      onObjectEnd: end,
      onArrayEnd: end,
      onLiteralValue: afterValue,
      onObjectProperty(key, _offset, _length, _line, _character, pathOfObject) {
        const keys = open.at(-1)
        const here: Path = [...pathOfObject(), key]
        if (keys?.has(key)) duplicates.push({ path: here, message: 'is given twice' })
        if (NO_NAMES.includes(key)) reserved.push({ path: here, message: 'is not allowed as a key' })
        keys?.add(key)
        expected = '":"'
      },
      onSeparator(separator) {
        expected = separator === ',' && open.at(-1) ? 'a key in quotation marks' : 'a value'
      },
      onError: (_error, _offset, _length, line, character) =>
        refuse('not valid JSON', line, character, `: expected ${expected}`),
    },
    { disallowComments: true },
  )
  return { value: JSON.parse(text) as unknown, duplicates, reserved }
}
