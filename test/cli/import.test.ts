import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { importBatches, MAX_LINE_BYTES, numberedLines } from '../../src/cli/import-input.js'
import { MAX_IMPORT_LINES, MAX_LINES_BYTES } from '../../src/handlers/body.js'
import { foldedState } from '../faults/aftermath.js'
import { deliveryLine } from '../history/exported-lines.js'
import { deliver, eventsOf, sentEvent, storiesOf } from '../stories.js'
import {
  API_KEY,
  answerOf,
  configuredFolder,
  failureOf,
  keyEntry,
  MAY_ALL,
  type RunOptions,
  run,
  serveHere,
  temporaryFolder,
} from '../world.js'

/** The day after the lines were received. */
const now = () => Date.UTC(2026, 2, 2, 12)
const AT = Date.UTC(2026, 0, 1)

const FACTS = { customer: { id: 'cus_1' }, product: { id: 'pro_1' } }
const payment = (id: string, type: string, at: number, told: object = FACTS) =>
  deliveryLine(sentEvent(id, type, AT + at, { object: 'payment', id: 'pay_1', method: 'CARD', ...told }).body)
const PAID = payment('evt_1', 'payment.authorized', 0)
const OTHER = payment('evt_1', 'payment.refunded', 7)
const NEXT = payment('evt_2', 'payment.succeeded', 1)
const HELD = payment('evt_3', 'payment.authorized', 5, { id: 'pay_9' })
const BROKEN = deliveryLine('{')
const SANDBOX = deliveryLine(
  sentEvent('evt_4', 'payment.authorized', AT, { id: 'pay_1', method: 'CARD', ...FACTS }, false).body,
  { endpoint: 'sandbox' },
  'whsec_sandbox',
)
const FORGED = deliveryLine('{}', {}, 'whsec_of_nobody')

/** A folder with a file of these lines, and a daemon that serves it. */
async function folderWith(...content: readonly (string | Buffer)[]): Promise<string> {
  const secrets = { live: ['whsec_live'], sandbox: ['whsec_sandbox'] }
  const endpoints = Object.fromEntries(
    Object.entries(secrets).map(([environment, own]) => [environment, { environment, secrets: own }]),
  )
  const keys = [...MAY_ALL.api.keys, keyEntry('app', 'lk_reader')]
  const folder = configuredFolder({ endpoints, api: { keys } })
  const [first] = content
  writeFileSync(join(folder, 'e.jsonl'), first instanceof Buffer ? first : linesOf(...(content as string[])))
  await serveHere(folder, { now })
  return folder
}

const linesOf = (...lines: readonly string[]) => `${lines.join('\n')}\n`
const take = (folder: string, words = 'e.jsonl', options: RunOptions = {}) =>
  run(folder, `import ${words}`, { now, ...options })
const exported = async (folder: string) => (await run(folder, 'events export', { now })).stdout

describe('latchkey import', () => {
  it('takes what can be taken, tells what became of it, and an export writes it again, line for line', async () => {
    const source = await folderWith()
    await run(source, 'grant cus_1 pro_2 --reason test', { now })
    const granted = (await exported(source)).trimEnd()
    const lines = [PAID, OTHER, NEXT, HELD, BROKEN, granted]
    const folder = await folderWith(...lines, SANDBOX)
    expect(await take(folder)).toEqual({
      code: 0,
      stdout:
        '7 lines, 3 applied, 1 held, 1 quarantined, 1 duplicate, 1 skipped\n' +
        'skipped: unsigned lines (manual changes, and events whose bytes were removed); "latchkey import --with-manual" imports them\n',
      stderr: '',
    })
    const none = { ignored: 0, held: 0, quarantined: 0, leftOut: 0, checked: 0, refused: 0, refusals: [] }
    const again = await answerOf(folder, 'import e.jsonl --with-manual', { now })
    expect(again).toEqual({ ...none, lines: 7, applied: 1, duplicates: 6 })
    expect(await exported(folder)).toBe(linesOf(...lines))
  })

  it('goes on after bad lines, names them by their number, and exits 1', async () => {
    const tooLong = 'x'.repeat(2_000_000)
    const ahead = JSON.stringify({ ...JSON.parse(NEXT), receivedAt: '2099-01-01T00:00:00.000Z' })
    const folder = await folderWith('no JSON', PAID, '', FORGED, tooLong, ahead, NEXT)
    const expected = [
      'error: 4 lines were refused; all other lines were read',
      '  line 1: line_invalid: is not JSON',
      '  line 4: signature_invalid: the signature matches none of the endpoint’s secrets',
      '  line 5: line_too_long: it has more than 1572864 bytes',
      expect.stringMatching(/^ {2}line 6: received_at_in_future: its time of receipt is/),
      '',
    ]
    const dry = await take(folder, 'e.jsonl --dry-run')
    expect({ code: dry.code, said: dry.stderr.split('\n') }).toEqual({ code: 1, said: expected })
    expect(dry.stdout).toMatch(/^6 lines, 2 checked, 4 refused\n/)
    expect(await exported(folder)).toBe('')
    const { code, stdout, stderr } = await take(folder)
    expect({ code, stdout, said: stderr.split('\n') }).toEqual({
      code: 1,
      stdout: '6 lines, 2 applied, 4 refused\n',
      said: expected,
    })
    expect(await exported(folder)).toBe(linesOf(PAID, NEXT))
  })

  it('says in words what a line lacks', async () => {
    const bare = JSON.stringify({ bodyBase64: '', receivedAt: 'yesterday' })
    const odd = JSON.stringify({ ...JSON.parse(PAID), headers: [], receivedAt: 7 })
    const reading = JSON.stringify({ kind: 'manual', environment: 'test', bodyBase64: '' })
    const { stderr } = await take(await folderWith(bare, odd, reading, '[]', '{"id":"evt_1"}'))
    expect(stderr.split('\n').slice(1)).toEqual([
      '  line 1: line_invalid: endpoint is missing; headers is missing; receivedAt is not a time such as 2026-01-31T12:00:00.000Z',
      '  line 2: line_invalid: headers is not an object; receivedAt is not a text',
      '  line 3: line_invalid: environment is not one of live, sandbox; receivedAt is missing',
      '  line 4: line_invalid: is not a JSON object',
      '  line 5: line_invalid: is not a line of "latchkey events export"; "latchkey send" signs and sends bodies of your own',
      '',
    ])
  })

  it('tells in JSON which lines were refused, the first of many', async () => {
    const { code, stdout, stderr } = await take(await folderWith(...Array(500).fill('{}')), 'e.jsonl --json')
    const { refused, refusals } = JSON.parse(stdout)
    expect({ code, refused, told: refusals.length }).toEqual({ code: 1, refused: 500, told: 20 })
    expect(refusals[19]).toMatchObject({ line: 20, reason: 'line_invalid' })
    expect(JSON.parse(stderr).error.code).toBe('lines_refused')
  })

  it('refuses what is of another environment than the one that is asked for', async () => {
    const folder = await folderWith(PAID, SANDBOX)
    const { code, stderr } = await take(folder, 'e.jsonl --environment sandbox')
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('  line 1: other_environment: it belongs to live\n'),
    })
    const { stdout } = await run(folder, 'events export --environment sandbox', { now })
    expect(stdout).toBe(linesOf(SANDBOX))
  })

  it('reads a file and standard input, however little comes at a time', async () => {
    const content = linesOf(PAID, NEXT)
    const folder = await folderWith(Buffer.from(content))
    expect((await take(folder)).stdout).toBe('2 lines, 2 applied\n')
    const input = [...Buffer.from(content)].map((byte) => Buffer.from([byte]))
    expect((await take(folder, '-', { input })).stdout).toBe('2 lines, 2 duplicate\n')
    expect(await take(folder, '-')).toEqual({ code: 0, stdout: '0 lines\n', stderr: '' })
  })

  it('fails where the file is missing or a folder, and takes nothing', async () => {
    for (const name of ['missing.jsonl', '.']) {
      expect(await failureOf(await folderWith(PAID), `import ${name}`)).toMatchObject({
        code: 1,
        error: { code: 'input_failed' },
      })
    }
  })

  it('takes over another store whole, acts by hand too', async () => {
    const source = configuredFolder()
    const daemon = await serveHere(source)
    await deliver(daemon.url, eventsOf(storiesOf(0, 20)))
    await answerOf(source, 'grant cus_1 pro_2 --reason case')
    await answerOf(source, 'block cus_2 --reason review')
    await answerOf(source, 'events export --output events.jsonl')
    const file = join(source, 'events.jsonl')
    const folder = configuredFolder()
    await serveHere(folder)
    expect(await answerOf(folder, `import ${file}`)).toMatchObject({ lines: 52, applied: 50, leftOut: 2 })
    const rest = await answerOf(folder, `import ${file} --with-manual`)
    expect(rest).toMatchObject({ applied: 2, duplicates: 50 })
    expect(await foldedState(folder)).toEqual(await foldedState(source))
    expect((await run(folder, 'events export')).stdout).toBe((await run(source, 'events export')).stdout)
  })

  it('goes to the daemon that --url names, for a key with the scope', async () => {
    const folder = await folderWith(PAID)
    const { url } = await answerOf(folder, 'status').then(({ listeners }) => ({ url: listeners.api }))
    const elsewhere = temporaryFolder()
    const file = `${join(folder, 'e.jsonl')} --url ${url}`
    const as = (key: string) => ({ env: { LATCHKEY_API_KEY: key } })
    const refused = await failureOf(elsewhere, `import ${file}`, as('lk_reader'))
    expect(refused).toMatchObject({ code: 1, error: { code: 'forbidden' } })
    expect(await answerOf(elsewhere, `import ${file}`, as(API_KEY))).toMatchObject({ lines: 1, applied: 1 })
  })
})

describe('the lines of an input', () => {
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
  const linesIn = (text: string | Buffer, sizes: readonly number[] = []) =>
    all(numberedLines(chunked(text, sizes)))
  const batchesIn = (text: string) => all(importBatches(chunked(text)))

  it('are the same wherever it is cut, blank ones left out and counted', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', ' ', '\r', '\n'), maxLength: 60 })
    const cuts = fc.array(fc.nat(9), { maxLength: 20 })
    const property = fc.asyncProperty(text, cuts, async (whole, sizes) => {
      const numbered = whole.split('\n').map((line, i) => ({ number: i + 1, text: line }))
      expect(await linesIn(whole, sizes)).toEqual(numbered.filter((line) => line.text.trim() !== ''))
    })
    await fc.assert(property)
  })

  it('are kept up to a bound, and one over it leaves the others alone', async () => {
    const longest = 'x'.repeat(MAX_LINE_BYTES)
    const sizes = Array.from({ length: 40 }, () => 65_536)
    const lines = await linesIn(`a\n${longest}\n${longest}x\nb`, sizes)
    expect(lines.map(({ text }) => text?.length)).toEqual([1, MAX_LINE_BYTES, undefined, 1])
    // What is no text grows beyond the bound.
    expect(await linesIn(Buffer.alloc(MAX_LINE_BYTES, 0xff))).toEqual([{ number: 1, text: null }])
  })

  it('come in batches that hold no more than a request may, by number and by size', async () => {
    const many = await batchesIn('x\n'.repeat(2 * MAX_IMPORT_LINES + 1))
    expect(many.map(({ length }) => length)).toEqual([MAX_IMPORT_LINES, MAX_IMPORT_LINES, 1])
    const large = await batchesIn(`${randomBytes(150_000).toString('base64')}\n`.repeat(25))
    expect(large.flat()).toHaveLength(25)
    for (const batch of large) {
      const bytes = Buffer.byteLength(batch.map(({ text }) => text).join('\n'))
      expect(bytes).toBeLessThanOrEqual(MAX_LINES_BYTES)
    }
  })
})
