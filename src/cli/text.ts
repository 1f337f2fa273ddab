/* Answers for people: tables with aligned columns, and colours on a terminal. */

import { styleText } from 'node:util'
import type { Finding } from '../doctor/finding.js'
import type { CliContext } from './context.js'

type Style = 'green' | 'yellow' | 'red'
export type Paint = (style: Style, text: string) => string

/** Colours on a terminal, unless NO_COLOR is set; nothing elsewhere. */
export function paintFor({ isTerminal, env }: CliContext): Paint {
  const isColoured = isTerminal && !env.NO_COLOR
  return (style, text) => (isColoured ? styleText(style, text, { validateStream: false }) : text)
}

/** Words for a state, by how good it is. */
const STYLES: readonly (readonly [Style, RegExp])[] = [
  ['green', /^(ok|active|applied|settled|yes|give)\b/],
  ['yellow', /^(warn|ending|held|due|retrying|waiting|paused|note|past)\b/],
  ['red', /^(FAIL|inactive|blocked|none|no|quarantined|parked|unconfirmed|refused|take)\b/],
  ['red', /^(failed|refunded|charged_back|voided|expired|canceled|completed|revoked)\b/],
]

function painted(cell: string, paint: Paint): string {
  const [style] = STYLES.find(([, words]) => words.test(cell)) ?? []
  return style === undefined ? cell : paint(style, cell)
}

/**
 * Characters that a terminal would obey or hide instead of showing them: controls, breaks of lines, and those that turn
 * the reading direction or take no room. Two of these join letters, and stay.
 */
const OBEYED = String.raw`\p{Cc}|\p{Zl}|\p{Zp}|(?![\u200c\u200d])\p{Cf}`
const OBEYED_IN_DATA = new RegExp(OBEYED, 'gu')
/** The first alternative is what commands write themselves: line breaks, colours and the progress bar. */
const OBEYED_IN_TEXT = new RegExp(String.raw`[\n\r\t]|\u001b\[(?:\d+m|K)|(${OBEYED})`, 'gu')

function escaped(character: string): string {
  const code = character.codePointAt(0)?.toString(16) ?? ''
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
}

/** Shows what somebody else's text holds for the terminal as escapes, in all text of a command. Bytes stay as they are. */
export function withVisibleText(context: CliContext): CliContext {
  const visible = (text: string): string =>
    text.replace(OBEYED_IN_TEXT, (match, obeyed?: string) => (obeyed === undefined ? match : escaped(obeyed)))
  return {
    ...context,
    out: (content) => context.out(typeof content === 'string' ? visible(content) : content),
    err: (text) => context.err(visible(text)),
  }
}

/** Rows as lines with aligned columns. Empty columns are left out. */
export function tableLines(given: readonly (readonly string[])[], paint?: Paint): string[] {
  const rows = given.map((row) => row.map((cell) => cell.replace(OBEYED_IN_DATA, escaped)))
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, column) => Math.max(widest[column] ?? 0, cell.length)),
    [],
  )
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const text = paint === undefined ? cell : painted(cell, paint)
        return { text: text + ' '.repeat((widths[column] ?? 0) - cell.length), isShown: widths[column] !== 0 }
      })
      .flatMap(({ text, isShown }) => (isShown ? [text] : []))
      .join('  ')
      .trimEnd(),
  )
}

/** The same as one text. */
export function table(rows: readonly (readonly string[])[], paint?: Paint): string {
  return linesText(tableLines(rows, paint))
}

/** A list as a table, or the line that says that it is empty. */
export function listText<Item>(
  items: readonly Item[],
  cellsOf: (item: Item) => readonly string[],
  none: string,
) {
  return (paint: Paint): string => (items.length === 0 ? `${none}\n` : table(items.map(cellsOf), paint))
}

/** A whole answer: one row for each value, after its path. Nulls and empty lists are left out. */
export function detailText(answer: object, paint?: Paint): string {
  return table(rowsOf(answer), paint)
}

function rowsOf(value: unknown, path = ''): string[][] {
  if (value === null) return []
  if (Array.isArray(value)) return value.map((item) => [path, inlineText(item)])
  if (typeof value !== 'object') return [[path, String(value)]]
  return Object.entries(value).flatMap(([name, inner]) => rowsOf(inner, path ? `${path}.${name}` : name))
}

/** `name live, environment live`. */
function inlineText(item: unknown): string {
  return rowsOf(item)
    .map((row) => row.join(' ').trim())
    .join(', ')
}

/** One line each; false: no line. */
export function linesText(lines: readonly (string | false)[]): string {
  return lines.map((line) => (line === false ? '' : `${line}\n`)).join('')
}

/** Wide enough for most endpoint names. */
const WHAT_WIDTH = 18

/** `FAIL  schema              written by a newer Latchkey: install that one`. */
export function findingLine({ level, what, detail, todo }: Finding, paint: Paint): string {
  const label = level === 'fail' ? 'FAIL' : level
  // A platform's message may end with a full stop.
  const said = todo === null ? detail : `${detail.replace(/\.$/, '')}: ${todo}`
  const space = ' '.repeat(4 - label.length)
  return `${painted(label, paint)}${space}  ${what.padEnd(WHAT_WIDTH)}  ${said}\n`
}

/** The value of a JSON text; undefined: it is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
