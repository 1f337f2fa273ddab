const JSON_ESCAPE = /\\(?:u([0-9a-f]{4})|(.))/gis
const PERCENT_BYTES = /(?:%[0-9a-f]{2})+/gi

/** What `\n` and the like stand for is white space, or never seen in a word. */
const BLANK_ESCAPES = new Set(['b', 'f', 'n', 'r', 't'])

/**
 * Every way in which a text may be meant that nobody has read for sure: as it stands, without the escapes of JSON, and
 * without those of addresses besides.
 */
export function readingsOf(text: string): readonly string[] {
  // Most texts have neither, and every delivery has many.
  if (!text.includes('\\') && !text.includes('%')) return [text]
  const unescaped = text.includes('\\') ? withoutJsonEscapes(text) : text
  const decoded = unescaped.includes('%') ? withoutPercents(unescaped) : unescaped
  return [...new Set([text, unescaped, decoded])]
}

/** The same of bytes, which may be UTF-16 too: then any text of ours has zeros. Linear in their length. */
export function readingsOfBytes(bytes: Buffer): readonly string[] {
  const texts = [bytes.toString('utf8')]
  if (bytes.includes(0)) texts.push(bytes.toString('utf16le'), fromBigEndian(bytes))
  return texts.flatMap(readingsOf)
}

function withoutJsonEscapes(text: string): string {
  return text.replace(JSON_ESCAPE, (_, hex: string | undefined, char: string) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
    return BLANK_ESCAPES.has(char) ? ' ' : char
  })
}

function withoutPercents(text: string): string {
  return text.replace(PERCENT_BYTES, (bytes) =>
    Buffer.from(bytes.replaceAll('%', ''), 'hex').toString('utf8'),
  )
}

function fromBigEndian(bytes: Buffer): string {
  const pairs = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)))
  return pairs.swap16().toString('utf16le')
}
