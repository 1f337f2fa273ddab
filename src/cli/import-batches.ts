import { MAX_IMPORT_BYTES, MAX_IMPORT_LINES } from '../handlers/imports.js'

/** A body of a mebibyte takes four thirds of that in base64; the headers beside it have room to spare. */
export const MAX_LINE_BYTES = 1.5 * 1024 * 1024

const NEWLINE = 0x0a

/** A line and its place in the input, from 1. */
export interface NumberedLine {
  readonly number: number
  /** Null: it is longer than any line of an export, and nothing of it was kept. */
  readonly text: string | null
}

/**
 * Lines of the input, blank ones left out, gathered until one request holds no more. Should reading fail, all lines
 * before that come first.
 */
export async function* importBatches(bytes: AsyncIterable<Buffer>): AsyncGenerator<readonly NumberedLine[]> {
  let batch: NumberedLine[] = []
  let size = 0
  let failure: { readonly error: unknown } | null = null
  try {
    for await (const line of numberedLines(bytes)) {
      const added = line.text === null ? 0 : Buffer.byteLength(line.text) + 1
      if (batch.length >= MAX_IMPORT_LINES || size + added > MAX_IMPORT_BYTES) {
        yield batch
        batch = []
        size = 0
      }
      batch.push(line)
      size += added
    }
  } catch (error) {
    failure = { error }
  }
  if (batch.length > 0) yield batch
  if (failure !== null) throw failure.error
}

/** Keeps no more than one line, and of a line that is too long nothing. */
export async function* numberedLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<NumberedLine> {
  let number = 1
  let parts: Buffer[] = []
  let size = 0

  const keep = (part: Buffer): void => {
    size += part.length
    if (size <= MAX_LINE_BYTES) parts.push(part)
    else parts = []
  }
  const end = (): NumberedLine => {
    const text = Buffer.concat(parts).toString('utf8')
    // What is not UTF-8 grows as it is read.
    const isTooLong = size > MAX_LINE_BYTES || Buffer.byteLength(text) > MAX_LINE_BYTES
    const line = { number, text: isTooLong ? null : text }
    number += 1
    parts = []
    size = 0
    return line
  }

  for await (const chunk of bytes) {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      keep(chunk.subarray(from, at))
      from = at + 1
      const line = end()
      if (line.text?.trim() !== '') yield line
    }
    keep(chunk.subarray(from))
  }
  const last = end()
  if (last.text?.trim() !== '') yield last
}
