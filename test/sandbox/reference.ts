/* The page of all that the sandbox serves, made from its own tables and from the names of its tests. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { SERVICE_CODES } from '../../src/provider/service-codes.js'
import { PAYMENT_MOVES } from '../../src/sandbox/model.js'
import { OPERATIONS } from '../../src/sandbox/server.js'
import { ROOT } from '../world.js'
import { codesOf, operationsOf, rowsOf, words } from './documents.js'

type Operation = (typeof OPERATIONS)[number]

interface Field {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly items?: Field
  readonly anyOf?: readonly Field[]
  readonly allOf?: readonly Field[]
  readonly properties?: Readonly<Record<string, Field>>
  readonly required?: readonly string[]
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const code = (text: string): string => `\`${text}\``

/** What a field takes, in a few words. */
function kindOf(field: Field): string {
  const { type, minimum, maximum, maxLength, items, anyOf, properties } = field
  const values = field.enum ?? (field.const === undefined ? undefined : [field.const])
  if (values !== undefined) return values.map((value) => code(String(value))).join(', ')
  if (anyOf !== undefined)
    return anyOf
      .filter((one) => one.type !== 'null')
      .map(kindOf)
      .join(', or ')
  if (items !== undefined) return `list of ${kindOf(items)}`
  if (properties !== undefined) return fieldsOf(field)
  const isBounded = typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER
  if (type === 'integer' || type === 'number') return isBounded ? `${minimum ?? 0} to ${maximum}` : 'number'
  if (type === 'boolean') return 'true or false'
  if (type === 'object') return 'object'
  return maxLength === undefined ? 'text' : `text up to ${maxLength}`
}

/** The fields of an object, those that must be sent in bold. */
function fieldsOf({ properties = {}, required = [], allOf = [] }: Field): string {
  const own = Object.entries(properties).map(([name, field]) => {
    const shown = required.includes(name) ? `**${code(name)}**` : code(name)
    const kind = kindOf(field)
    return field.properties === undefined ? `${shown} ${kind}` : `${shown} (${kind})`
  })
  return [...own, ...allOf.map(fieldsOf)].filter((text) => text !== '').join('; ')
}

const schemaOf = (schema: z.ZodType): Field =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Field

function operationRow(operation: Operation): readonly string[] {
  const { method, path, status, input } = operation
  return [code(`${method} ${path}`), String(status), fieldsOf(schemaOf(input)).replaceAll('|', '\\|')]
}

/** In the order of the document, if it is one of a document. */
function operations(served: (operation: Operation) => boolean, order: readonly string[]): string {
  const place = ({ method, path }: Operation): number => order.indexOf(words(method, path))
  const rows = OPERATIONS.filter(served).toSorted((a, b) => place(a) - place(b))
  return table(['Operation', 'Success', 'Takes (what must be sent is bold)'], rows.map(operationRow))
}

function codes(): string {
  const given = [...rowsOf('v3', 'Errors of a change of plan'), ...rowsOf('v2', 'Errors')]
  const statusOf = new Map(given.map(([status = '', name = '']) => [name, status]))
  const rows = Object.entries(SERVICE_CODES).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return table(
    ['Code', 'Status', 'Documents', 'Status from'],
    rows.map(([name, status]) => [
      code(name),
      String(status),
      (['v3', 'v2'] as const).filter((document) => codesOf(document).includes(name)).join(', '),
      statusOf.get(name) === String(status) ? 'the document' : 'choice',
    ]),
  )
}

const moves = (): string =>
  table(
    ['From', 'To'],
    Object.entries(PAYMENT_MOVES).map(([from, ends]) => [
      code(from),
      ends.length === 0 ? 'stays' : ends.map(code).join(', '),
    ]),
  )

interface Tested {
  readonly about: string
  readonly says: readonly string[]
}

/** The names of the tests of a file, by what they are about. */
function testsIn(file: string): readonly Tested[] {
  const text = readFileSync(join(ROOT, 'test', 'sandbox', file), 'utf8')
  const found: { about: string; says: string[] }[] = []
  for (const [, , title = '', each = ''] of text.matchAll(
    /^( *)(?:describe\('([^']+)'|it(?:\.[\w.]+\([\s\S]*?\))?\(\s*'((?:[^'\\]|\\.)+)')/gm,
  )) {
    if (title !== '') found.push({ about: title, says: [] })
    else found.at(-1)?.says.push(each.replaceAll(/%[sij]|\$\w+/g, '…').replaceAll("\\'", "'"))
  }
  return found
}

function rules(): string {
  const files = readdirSync(join(ROOT, 'test', 'sandbox')).filter((name) => name.endsWith('.test.ts'))
  const rows = files
    .toSorted()
    .flatMap((file) =>
      testsIn(file).flatMap(({ about, says }) =>
        says.map((said) => [`${about} ${said}`, code(`test/sandbox/${file}`)]),
      ),
    )
  return table(['Rule', 'Test'], rows)
}

export const referencePage = (): string => `# What the sandbox serves

[README](../README.md) › [Sandbox](sandbox.md) › What it serves

This page is generated from the sandbox's own tables and its tests: \`npx vitest run test/sandbox/reference.test.ts -u\` writes
it. What the documents leave open is on the list of [choices](sandbox.md#choices).

## Operations of v3

Each has a test of its name in \`test/sandbox/operations.test.ts\`, which asks for it and compares what it shows, and one that asks
without the key. A test compares the list with the document's.

${operations(({ generation }) => generation === 'v3' || generation === 'open', operationsOf('v3'))}

## Operations of v2

Tested in the same way.

${operations(({ generation }) => generation === 'v2', operationsOf('v2'))}

## Operations of people, clocks and banks

No document has them.

${operations(({ generation }) => generation === 'sandbox', [])}

## Statuses of a payment

\`test/sandbox/transitions.test.ts\` makes each of these moves, and no other is left.

${moves()}

## Codes

\`test/sandbox/service-rules.test.ts\` has each of them come on request, and those that a rule raises come by that rule.
\`test/sandbox/change-plan.test.ts\` does the same for those of plan changes.

${codes()}

## Rules

${rules()}
`
