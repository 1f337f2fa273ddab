import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../world.js'

/** What the service's own documents say: their tables, copied as they were read. */
export type Document = 'v3' | 'v2'

const textOf = (document: Document): string =>
  readFileSync(join(ROOT, 'test', 'fixtures', 'sandbox', `${document}.md`), 'utf8')

/** The text below a heading of a document. */
export function sectionOf(document: Document, heading: string): string {
  const [, section] = textOf(document).split(`\n## ${heading}\n`)
  if (section === undefined) throw new Error(`${document} has no section ${heading}`)
  return section.split('\n## ')[0] ?? ''
}

/** The rows of the table below a heading, without its head. */
export function rowsOf(document: Document, heading: string): readonly (readonly string[])[] {
  const lines = sectionOf(document, heading)
    .split('\n')
    .filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}

/** The names in the first column, where one row may have several. */
export function namesIn(document: Document, heading: string): readonly string[] {
  return rowsOf(document, heading).flatMap(([first = '']) => first.replaceAll('`', '').split(', '))
}

/** `POST /v3/products`, with every parameter named as `:`, since the documents name them in many ways. */
export function operationsOf(document: Document): readonly string[] {
  return rowsOf(document, 'Operations').map(([method = '', path = '']) => words(method, path))
}

export function words(method: string, path: string): string {
  const plain = path.replace(/\?.*/, '').replace(/\/$/, '')
  return `${method} ${plain.replaceAll(/\{\w+\}|:\w+/g, ':')}`
}

/** Every error code that the documents name. */
export function codesOf(document: Document): readonly string[] {
  const texts =
    document === 'v3'
      ? [
          sectionOf('v3', 'Universal codes'),
          ...rowsOf('v3', 'Domain codes').map(([, codes = '']) => codes),
          ...rowsOf('v3', 'Errors of a change of plan').map(([, code = '']) => code),
        ]
      : rowsOf('v2', 'Errors').map(([, code = '']) => code)
  return [
    ...new Set(texts.flatMap((text) => text.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b[A-Z]{6,}\b/g) ?? [])),
  ]
}
