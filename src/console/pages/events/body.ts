/* The bytes of a body, as one can read them. */

/** Null: it is not UTF-8. */
export function textIn(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/** Long enough for a person: the whole is a download away. */
const HEX_BYTES = 4_096
const PER_LINE = 16

/** Such as `00000010  7b 22 69 64  {"id`. */
export function hexOf(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < Math.min(bytes.length, HEX_BYTES); at += PER_LINE) {
    const row = [...bytes.subarray(at, at + PER_LINE)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row.map((byte) => (byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(PER_LINE * 3 - 1)}  ${text}`)
  }
  if (bytes.length > HEX_BYTES) lines.push(`and ${bytes.length - HEX_BYTES} bytes more`)
  return lines.join('\n')
}

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/gs

/**
 * JSON with line breaks and spaces between its tokens. The tokens are those of the text: no number is rounded, no key
 * is left out or moved, no escape is resolved, which parsing it would do. What is not JSON stays as it is.
 */
export function indented(text: string): string {
  try {
    JSON.parse(text)
  } catch {
    return text
  }
  let depth = 0
  let out = ''
  const tokens = text.match(TOKENS) ?? []
  const line = (): string => `\n${'  '.repeat(depth)}`
  for (const [index, token] of tokens.entries()) {
    const before = tokens[index - 1]
    if (token === '}' || token === ']') {
      depth -= 1
      out += before === '{' || before === '[' ? token : `${line()}${token}`
      continue
    }
    if (before === '{' || before === '[' || before === ',') out += line()
    out += token === ':' ? ': ' : token
    if (token === '{' || token === '[') depth += 1
  }
  return out
}
