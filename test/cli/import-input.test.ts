import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { importBatches, MAX_LINE_BYTES, numberedLines } from '../../src/cli/import-input.js'
import { LatchkeyError } from '../../src/errors.js'
import { MAX_LINES_BYTES } from '../../src/handlers/body.js'
import { MAX_IMPORT_LINES } from '../../src/handlers/events.js'

async function* chunked(text: string | Buffer, sizes: readonly number[] = []): AsyncGenerator<Buffer> {
  let rest = Buffer.from(text)
  for (const size of sizes) {
    yield rest.subarray(0, size)
    rest = rest.subarray(size)
  }
  yield rest
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}

const text = fc.string({ unit: fc.constantFrom('a', 'é', ' ', '\r', '\n'), maxLength: 60 })

describe('the lines of an input', () => {
  it('are the same wherever it is cut, blank ones left out and counted', async () => {
    const property = fc.asyncProperty(text, fc.array(fc.nat(9), { maxLength: 20 }), async (whole, sizes) => {
      const expected = whole
        .split('\n')
        .map((line, i) => ({ number: i + 1, text: line }))
        .filter((line) => line.text.trim() !== '')
      expect(await all(numberedLines(chunked(whole, sizes)))).toEqual(expected)
    })
    await fc.assert(property)
  })

  it('are kept up to a bound, and one over it leaves the others alone', async () => {
    const longest = 'x'.repeat(MAX_LINE_BYTES)
    const sizes = Array.from({ length: 40 }, () => 65_536)
    const lines = await all(numberedLines(chunked(`a\n${longest}\n${longest}x\nb`, sizes)))
    expect(lines.map(({ number, text }) => [number, text?.length])).toEqual([
      [1, 1],
      [2, MAX_LINE_BYTES],
      [3, undefined],
      [4, 1],
    ])
  })

  it('are too long as well where what is no text would grow beyond the bound', async () => {
    const bytes = Buffer.alloc(MAX_LINE_BYTES, 0xff)
    expect(await all(numberedLines(chunked(bytes)))).toEqual([{ number: 1, text: null }])
  })
})

describe('a batch of lines', () => {
  it('holds no more than a request may, by number', async () => {
    const batches = await all(importBatches(chunked('x\n'.repeat(2 * MAX_IMPORT_LINES + 1))))
    expect(batches.map(({ length }) => length)).toEqual([MAX_IMPORT_LINES, MAX_IMPORT_LINES, 1])
  })

  it('holds no more than a request may, by size', async () => {
    const line = randomBytes(150_000).toString('base64')
    const batches = await all(importBatches(chunked(`${line}\n`.repeat(25))))
    expect(batches.flat()).toHaveLength(25)
    for (const batch of batches) {
      expect(Buffer.byteLength(batch.map(({ text }) => text).join('\n'))).toBeLessThanOrEqual(MAX_LINES_BYTES)
    }
  })

  it('is there with what came before the input broke, which is told after it', async () => {
    async function* breaking(): AsyncGenerator<Buffer> {
      yield Buffer.from('a\nb\nc')
      throw new LatchkeyError('input_failed', 'broken')
    }
    const batches = importBatches(breaking())
    expect((await batches.next()).value).toMatchObject([{ text: 'a' }, { text: 'b' }])
    await expect(batches.next()).rejects.toMatchObject({ code: 'input_failed' })
  })
})
