import { isDeepStrictEqual } from 'node:util'
import { type Node, parseTree } from 'jsonc-parser'

/**
 * The JSON text, changed only where it must be to hold `value`: all else keeps every byte. New parts are laid out as
 * their neighbours are.
 *
 * (`modify` of `jsonc-parser` can't do this: when it removes the last of several elements, it keeps the two characters
 * before the end of the list, whatever they are.)
 *
 * @param text valid JSON without repeated keys
 */
export function rewriteJson(text: string, value: unknown): string {
  const root = parseTree(text)
  if (root === undefined) throw new Error('the text is not JSON')
  const [, lineBreak = '\n', step = '  '] = /(\r?\n)([ \t]+)\S/.exec(text) ?? []
  const rewritten = rewriteNode({ text, lineBreak, step }, root, value)
  return text.slice(0, root.offset) + rewritten + text.slice(endOf(root))
}

interface Layout {
  readonly text: string
  readonly lineBreak: string
  /** The indentation of one level. */
  readonly step: string
}

/** An element of a list; or a member of an object, with its name. */
interface Wanted {
  /** Where it was; -1: it is new. */
  readonly from: number
  readonly name: string | null
  readonly value: unknown
}

function rewriteNode(layout: Layout, node: Node, value: unknown): string {
  const { text } = layout
  const { offset, children = [] } = node
  const written = text.slice(offset, endOf(node))
  const before: unknown = JSON.parse(written)
  if (isDeepStrictEqual(before, value)) return written
  const wanted = wantedParts(node, before, value)
  const last = children.at(-1)
  if (wanted === null || last === undefined) {
    const [indent = ''] = /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset) + 1)) ?? []
    return newValue(layout, value, text.includes('\n') ? indent : null)
  }
  if (wanted.length === 0) return JSON.stringify(value)

  /** What separates a part from the one before; the first from the bracket. */
  const gaps = children.map((child, index) => {
    const previous = children[index - 1]
    return text.slice(previous === undefined ? offset + 1 : endOf(previous), child.offset)
  })
  const [lead = '', ...separators] = gaps
  const [, indent = null] = /\n([ \t]*)$/.exec(lead) ?? []
  const parts = wanted.map((part) => {
    const old = children[part.from]
    if (old !== undefined) return rewritePart(layout, old, part.value)
    return `${part.name === null ? '' : `${JSON.stringify(part.name)}: `}${newValue(layout, part.value, indent)}`
  })
  const joined = parts.map((part, place) => {
    if (place === 0) return lead + part
    const from = wanted[place]?.from ?? -1
    return (from > 0 ? gaps[from] : (separators.at(-1) ?? `,${lead}`)) + part
  })
  return written.slice(0, 1) + joined.join('') + text.slice(endOf(last), endOf(node))
}

/** The parts of a list or an object, in their new order; null: these two are not both the one or the other. */
function wantedParts({ children = [] }: Node, before: unknown, value: unknown): readonly Wanted[] | null {
  if (Array.isArray(before) && Array.isArray(value)) return wantedElements(before, value)
  if (!isObject(before) || !isObject(value)) return null
  // In the order of the text, which is not always that of the object.
  const names = children.map((member) => String(member.children?.[0]?.value))
  const remaining = names.filter((name) => Object.hasOwn(value, name))
  const added = Object.keys(value).filter((name) => !Object.hasOwn(before, name))
  return [...remaining, ...added].map((name) => ({ from: names.indexOf(name), name, value: value[name] }))
}

/** The same at both ends is kept; what is between is changed one by one. */
function wantedElements(before: readonly unknown[], value: readonly unknown[]): readonly Wanted[] {
  const most = Math.min(before.length, value.length)
  let start = 0
  while (start < most && isDeepStrictEqual(before[start], value[start])) start += 1
  let end = 0
  while (end < most - start && isDeepStrictEqual(before.at(-1 - end), value.at(-1 - end))) end += 1
  return value.map((element, index) => {
    const isAtEnd = index >= value.length - end
    const from = isAtEnd ? index - value.length + before.length : index
    return { from: isAtEnd || from < before.length - end ? from : -1, name: null, value: element }
  })
}

/** An element; or a member, whose name and colon stay as they are. */
function rewritePart(layout: Layout, part: Node, value: unknown): string {
  const content = part.type === 'property' ? part.children?.[1] : part
  if (content === undefined) throw new Error('a member without a value')
  return layout.text.slice(part.offset, content.offset) + rewriteNode(layout, content, value)
}

/** @param indent of the line that it begins in; null: it stays in that line */
function newValue({ lineBreak, step }: Layout, value: unknown, indent: string | null): string {
  if (indent === null) return JSON.stringify(value)
  return JSON.stringify(value, null, step).replaceAll('\n', `${lineBreak}${indent}`)
}

function endOf({ offset, length }: Node): number {
  return offset + length
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
