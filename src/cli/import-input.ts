import { createReadStream, statSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { LatchkeyError } from '../errors.js'
import { refusalText } from './system-refusal.js'

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b])

export interface ImportInput {
  /** Unpacked where they are gzip, whatever the file is called. */
  readonly bytes: AsyncIterable<Buffer>
  /** Of the file as it lies there; null: nobody knows. */
  readonly size: number | null
  /** How many of these have been read. */
  readonly reached: () => number
}

/**
 * A file, or, named `-`, standard input.
 * @throws {LatchkeyError} `input_failed`, while it is read too
 */
export function openImportInput(file: string, stdin: () => Readable): ImportInput {
  const name = file === '-' ? 'standard input' : file
  let reached = 0
  async function* counted(source: Readable): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      reached += chunk.length
      yield chunk
    }
  }
  async function* told(): AsyncGenerator<Buffer> {
    try {
      yield* await unpacked(counted(file === '-' ? stdin() : createReadStream(file)))
    } catch (error) {
      throw failed(name, error)
    }
  }
  return { bytes: told(), size: file === '-' ? null : sizeOf(file), reached: () => reached }
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size
  } catch (error) {
    throw failed(file, error)
  }
}

/** Reads as far as it takes to tell whether they are packed. */
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
  // Whoever reads what comes out is told of a failure, which also reaches this function.
  return pipeline(Readable.from(whole()), createGunzip(), () => {})
}

function failed(name: string, error: unknown): LatchkeyError {
  const message = isCutOff(error)
    ? `${name} is a gzip file that ends too early: the rest of it is missing`
    : `${name} can't be read: ${refusalText(error)}`
  return new LatchkeyError('input_failed', message, { cause: error })
}

/** How zlib calls an end of the input ahead of the end of what is packed in it. */
function isCutOff(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'Z_BUF_ERROR'
}
