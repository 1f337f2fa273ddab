import { createReadStream, statSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createGunzip } from 'node:zlib'
import { LatchkeyError } from '../errors.js'
import { MAX_LINES_BYTES } from '../handlers/body.js'
import { MAX_IMPORT_LINES } from '../handlers/events.js'
import { refusalText } from '../system-refusal.js'

/** Base64 makes four thirds of a mebibyte body; the headers beside it have room to spare. */
export const MAX_LINE_BYTES = 1.5 * 1024 * 1024

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b])

export interface ImportInput {
  /** Unpacked if they are gzip, whatever the file's name. */
  readonly bytes: AsyncIterable<Buffer>
  /** Of the file, packed or not; null: unknown. */
  readonly size: number | null
  /** How many of these have been read. */
  readonly reached: () => number
}

/**
 * Opens a file, or standard input if the name is `-`.
 * @throws {LatchkeyError} `input_failed`, also while the bytes are read
 */
export function openImportInput(file: string, stdin: () => Readable): ImportInput {
  const isFile = file !== '-'
  const name = isFile ? file : 'standard input'
  let reached = 0
  async function* counted(source: Readable): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      reached += chunk.length
      yield chunk
    }
  }
  async function* bytes(): AsyncGenerator<Buffer> {
    try {
      yield* await unpacked(counted(isFile ? createReadStream(file) : stdin()))
    } catch (error) {
      throw failed(name, error)
    }
  }
  return { bytes: bytes(), size: isFile ? sizeOf(file) : null, reached: () => reached }
}

/** @throws {LatchkeyError} `input_failed` if a file, not standard input, is missing */
export function assertInput(file: string): void {
  if (file !== '-') sizeOf(file)
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size
  } catch (error) {
    throw failed(file, error)
  }
}

/** Reads enough to know whether the input is gzip. */
async function unpacked(chunks: AsyncGenerator<Buffer>): Promise<AsyncIterable<Buffer>> {
  let head: Buffer = Buffer.alloc(0)
  while (head.length < GZIP_MAGIC.length) {
    const { value, done } = await chunks.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  async function* whole(): AsyncGenerator<Buffer> {
    yield head
    yield* chunks
  }
  if (!head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) return whole()
  // The reader of the unpacked bytes gets the error too, so this callback need not report it.
  return pipeline(Readable.from(whole()), createGunzip(), () => {})
}

function failed(name: string, error: unknown): LatchkeyError {
  // zlib reports this if the input ends early.
  const isCutOff = error instanceof Error && 'code' in error && error.code === 'Z_BUF_ERROR'
  const message = isCutOff
    ? `${name} is a gzip file that ends too early: the rest of it is missing`
    : `${name} can't be read: ${refusalText(error)}`
  return new LatchkeyError('input_failed', message, { cause: error })
}

/** A line and its place in the input, from 1. */
export interface NumberedLine {
  readonly number: number
  /** Null: it is longer than any line of an export. */
  readonly text: string | null
}

/**
 * The lines that are not blank, in batches that fit into one request. If reading fails, the lines read before come
 * first.
 */
export async function* importBatches(bytes: AsyncIterable<Buffer>): AsyncGenerator<readonly NumberedLine[]> {
  let batch: NumberedLine[] = []
  let size = 0
  let failure: { readonly error: unknown } | null = null
  try {
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
  } catch (error) {
    failure = { error }
  }
  if (batch.length > 0) yield batch
  if (failure !== null) throw failure.error
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
