import { createReadStream, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { LatchkeyError } from '../errors.js'
import { MAX_IMPORT_LINES, MAX_LINES_BYTES } from '../handlers/body.js'
import { refusalText } from '../system-refusal.js'

/** Base64 makes four thirds of a mebibyte body; the headers beside it have room to spare. */
export const MAX_LINE_BYTES = 1.5 * 1024 * 1024

/**
 * Opens a file, or standard input if the name is `-`.
 * @throws {LatchkeyError} `input_failed`, also while the bytes are read
 */
export function openImportInput(file: string, stdin: () => Readable) {
  const size = assertInput(file)
  const source = size === null ? stdin() : createReadStream(file)
  async function* bytes(): AsyncGenerator<Buffer> {
    try {
      yield* source
    } catch (error) {
      throw failed(size === null ? 'standard input' : file, error)
    }
  }
  return {
    bytes: bytes(),
    /** How much of it is read, from 0 to 1; null: unknown. */
    share: () => ('bytesRead' in source && size ? source.bytesRead / size : null),
  }
}

/**
 * The size of a file; null for standard input.
 * @throws {LatchkeyError} `input_failed` if the file is missing
 */
export function assertInput(file: string): number | null {
  if (file === '-') return null
  try {
    return statSync(file).size
  } catch (error) {
    throw failed(file, error)
  }
}

function failed(name: string, cause: unknown): LatchkeyError {
  return new LatchkeyError('input_failed', `${name} can't be read: ${refusalText(cause)}`, { cause })
}

/** A line and its place in the input, from 1. */
export interface NumberedLine {
  readonly number: number
  /** Null: it is longer than any line of an export. */
  readonly text: string | null
}

/** The lines that are not blank, in batches that fit into one request. */
export async function* importBatches(bytes: AsyncIterable<Buffer>): AsyncGenerator<readonly NumberedLine[]> {
  let batch: NumberedLine[] = []
  let size = 0
  for await (const line of numberedLines(bytes)) {
    const added = line.text === null ? 0 : Buffer.byteLength(line.text) + 1
    if (batch.length >= MAX_IMPORT_LINES || size + added > MAX_LINES_BYTES) {
      yield batch
      batch = []
      size = 0
    }
    batch.push(line)
    size += added
  }
  if (batch.length > 0) yield batch
}

/**
 * Splits at newlines only (`node:readline` also splits at characters that JSON allows within a line), with at most
 * one line in memory.
 */
export async function* numberedLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<NumberedLine> {
  const decoder = new StringDecoder('utf8')
  let number = 0
  let rest = ''
  for await (const chunk of bytes) {
    const texts = (rest + decoder.write(chunk)).split('\n')
    // One character over the limit is enough to know that a line is too long.
    rest = texts.pop()?.slice(0, MAX_LINE_BYTES + 1) ?? ''
    for (const text of texts) {
      number += 1
      if (text.trim() !== '') yield numbered(number, text)
    }
  }
  rest += decoder.end()
  if (rest.trim() !== '') yield numbered(number + 1, rest)
}

function numbered(number: number, text: string): NumberedLine {
  return { number, text: Buffer.byteLength(text) > MAX_LINE_BYTES ? null : text }
}
