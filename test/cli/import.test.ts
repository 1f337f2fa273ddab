import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { eventsExportCommand } from '../../src/cli/events.js'
import { importCommand } from '../../src/cli/import.js'
import { runCli } from '../../src/cli/program.js'
import { lockStore } from '../../src/store/sqlite/file.js'
import { byHand, pay, sub } from '../entitlements/events.js'
import { deliveryLine, manualLine } from '../history/exported-lines.js'
import { bodyOf } from '../ingest/wire.js'
import { temporaryFile } from '../store/temporary-store.js'
import { configFor } from './stored-events.js'

/** The day after the lines were received. */
const TAKEN_AT = Date.UTC(2026, 2, 2, 12)

const PAID = deliveryLine(bodyOf(pay('evt_1', 'payment.authorized', 'pay_1', 0)))
const OTHER = deliveryLine(bodyOf(pay('evt_1', 'payment.refunded', 'pay_1', 7)))
const BEGUN = deliveryLine(bodyOf(sub('evt_2', 'subscription.created', 0)))
const HELD = deliveryLine(
  bodyOf(pay('evt_3', 'payment.authorized', 'pay_9', 5, { customerId: null, subscriptionId: null })),
)
const BROKEN = deliveryLine('{')
const SANDBOX = deliveryLine(
  bodyOf(pay('evt_4', 'payment.authorized', 'pay_1', 0)),
  { endpoint: 'sandbox' },
  'whsec_sandbox',
)
const GRANTED = manualLine(byHand('manual.granted', 0))
const FORGED = deliveryLine('{}', {}, 'whsec_of_nobody')

interface Run {
  readonly exitCode: number
  readonly out: string
  readonly err: string
}

/** A database that nobody serves, and is not there yet. */
function importing({ isTerminal = false } = {}) {
  const file = temporaryFile()
  const folder = dirname(dirname(file))
  const config = configFor(file)
  mkdirSync(folder, { recursive: true })
  async function run(args: readonly string[], input: readonly Buffer[] = []): Promise<Run> {
    let [out, err] = ['', '']
    const world = {
      env: {},
      folder,
      now: () => TAKEN_AT,
      isTerminal,
      out: (text: string | Uint8Array) => {
        out += text
      },
      err: (text: string) => {
        err += text
      },
    }
    const commands = [importCommand(() => Readable.from(input)), eventsExportCommand]
    return { exitCode: await runCli([...args, '--config', config], world, commands), out, err }
  }
  const write = (content: string | Buffer) => {
    writeFileSync(join(folder, 'events.jsonl'), content)
    return 'events.jsonl'
  }
  return { file, run, write }
}

const linesOf = (...lines: readonly string[]) => `${lines.join('\n')}\n`

describe('latchkey import', () => {
  it('takes what can be taken, and tells what became of it', async () => {
    const { run, write } = importing()
    const file = write(linesOf(PAID, OTHER, BEGUN, HELD, BROKEN, SANDBOX, GRANTED))
    expect(await run(['import', file])).toEqual({
      exitCode: 0,
      out:
        '7 lines, 3 applied, 1 held, 1 quarantined, 1 duplicate, 1 left out\n' +
        'left out: unsigned lines (acts by hand, and events whose bytes were removed); --with-manual takes them\n',
      err: '',
    })
    const again = await run(['import', file, '--with-manual', '--json'])
    expect({ ...again, out: JSON.parse(again.out) }).toEqual({
      exitCode: 0,
      out: {
        lines: 7,
        applied: 1,
        ignored: 0,
        held: 0,
        quarantined: 0,
        duplicates: 6,
        leftOut: 0,
        checked: 0,
        refused: 0,
        refusals: [],
      },
      err: '',
    })
  })

  it('stores what an export then writes again, line for line', async () => {
    const { run, write } = importing()
    const lines = linesOf(PAID, OTHER, BEGUN, HELD, BROKEN, GRANTED)
    expect(await run(['import', write(lines), '--with-manual'])).toMatchObject({ exitCode: 0 })
    expect(await run(['events', 'export'])).toEqual({ exitCode: 0, out: lines, err: '' })
  })

  it('goes on after bad lines, names them by their number, and exits 1', async () => {
    const { run, write } = importing()
    const tooLong = 'x'.repeat(2_000_000)
    const file = write(linesOf('no JSON', PAID, '', FORGED, tooLong, BEGUN))
    const { exitCode, out, err } = await run(['import', file])
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '5 lines, 2 applied, 3 refused\n' })
    expect(err.split('\n')).toEqual([
      'error: 3 lines were refused; all other lines were read',
      '  line 1: line_invalid: is not JSON',
      '  line 4: signature_invalid: the signature matches none of the endpoint’s secrets',
      '  line 5: line_too_long: it has more than 1572864 bytes',
      '',
    ])
  })

  it('lets no line put itself ahead of its time', async () => {
    const { run, write } = importing()
    const ahead = { receivedAt: '2099-01-01T00:00:00.000Z' }
    const yetToCome = bodyOf(pay('evt_5', 'payment.authorized', 'pay_5', 0))
    const file = write(linesOf(PAID, deliveryLine(yetToCome, ahead)))
    for (const args of [['--dry-run'], []]) {
      const { exitCode, err } = await run(['import', file, ...args])
      expect(exitCode).toBe(1)
      expect(err).toContain('  line 2: received_at_in_future: it is said to have been received')
    }
    expect((await run(['events', 'export'])).out).toBe(linesOf(PAID))
  })

  it('tells in JSON which lines were refused, the first of many', async () => {
    const { run, write } = importing()
    const { exitCode, out, err } = await run(['import', write('{}\n'.repeat(500)), '--json'])
    expect(exitCode).toBe(1)
    const { refused, refusals } = JSON.parse(out)
    expect(refused).toBe(500)
    expect(refusals).toHaveLength(20)
    expect(refusals[19]).toMatchObject({ line: 20, reason: 'line_invalid' })
    expect(JSON.parse(err).error.code).toBe('lines_refused')
  })

  it('refuses what is of another environment than the one that is asked for', async () => {
    const { run, write } = importing()
    const { exitCode, err } = await run(['import', write(linesOf(PAID, SANDBOX)), '--environment', 'sandbox'])
    expect(exitCode).toBe(1)
    expect(err).toContain('  line 1: other_environment: it belongs to live\n')
    expect((await run(['events', 'export', '--environment', 'sandbox'])).out).toBe(linesOf(SANDBOX))
  })

  it('only checks in a dry run, and makes no database', async () => {
    const { file, run, write } = importing()
    const lines = write(linesOf(PAID, FORGED, GRANTED))
    const { exitCode, out } = await run(['import', lines, '--dry-run'])
    expect(exitCode).toBe(1)
    expect(out).toMatch(/^3 lines, 1 left out, 1 checked, 1 refused\n/)
    expect(existsSync(file)).toBe(false)
  })

  it.each([
    ['as it is', (content: Buffer) => content],
    ['packed', (content: Buffer) => gzipSync(content)],
  ])('reads a file and standard input %s, however little comes at a time', async (_, pack) => {
    const packed = pack(Buffer.from(linesOf(PAID, BEGUN)))
    const { run, write } = importing()
    expect((await run(['import', write(packed)])).out).toBe('2 lines, 2 applied\n')
    const bytes = [...packed].map((byte) => Buffer.from([byte]))
    expect((await run(['import', '-'], bytes)).out).toBe('2 lines, 2 duplicate\n')
  })

  it('takes an empty input for one without lines', async () => {
    const { run } = importing()
    expect(await run(['import', '-'])).toEqual({ exitCode: 0, out: '0 lines\n', err: '' })
  })

  it('takes what came before a packed file breaks off, and fails', async () => {
    const { run, write } = importing()
    const packed = gzipSync(linesOf(PAID, BEGUN))
    const file = write(packed.subarray(0, -8))
    const { exitCode, out, err } = await run(['import', file])
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' })
    const why = 'events\\.jsonl is a gzip file that ends too early: the rest of it is missing'
    const taken = 'the lines before that are taken in'
    expect(err).toMatch(new RegExp(`^stopped after 2 lines, 2 applied\nerror: .*${why}; ${taken}\n$`))
    expect((await run(['import', file, '--dry-run'])).err).toMatch(/; the lines before that are checked\n$/)

    const inJson = await run(['import', file, '--json'])
    expect(JSON.parse(inJson.out)).toMatchObject({ lines: 2, applied: 0, duplicates: 2 })
    expect(JSON.parse(inJson.err)).toMatchObject({
      error: { code: 'input_failed', message: expect.stringMatching(new RegExp(`${why}; ${taken}$`)) },
    })
  })

  it('says no more than what is wrong where a packed file breaks off within its first line', async () => {
    const { run, write } = importing()
    const file = write(gzipSync(linesOf(PAID)).subarray(0, 30))
    const { out, err } = await run(['import', file, '--json'])
    expect(out).toBe('')
    expect(JSON.parse(err).error.message).toMatch(
      / is a gzip file that ends too early: the rest of it is missing$/,
    )
  })

  it('fails where there is no such file', async () => {
    const { exitCode, err } = await importing().run(['import', 'missing.jsonl', '--json'])
    expect({ exitCode, code: JSON.parse(err).error.code }).toEqual({ exitCode: 1, code: 'input_failed' })
  })

  it('shows a person how far it is', async () => {
    const { run, write } = importing({ isTerminal: true })
    const { err } = await run(['import', write(linesOf(PAID, BEGUN))])
    expect(err).toBe(`\r${'█'.repeat(24)} 100 %  2 lines read\r\u001b[K`)
  })

  it('takes nothing while another process holds the store without answering', async () => {
    const { file, run, write } = importing()
    await run(['import', write(linesOf(PAID))])
    const lock = lockStore(file)
    const { exitCode, err } = await run(['import', write(linesOf(BEGUN)), '--json'])
    expect({ exitCode, code: JSON.parse(err).error.code }).toEqual({ exitCode: 1, code: 'store_in_use' })
    lock.release()
    expect((await run(['events', 'export'])).out).toBe(linesOf(PAID))
  })
})
