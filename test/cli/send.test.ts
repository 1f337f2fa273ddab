import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { buildSampleEvent } from '../../src/provider/sample-event.js'
import { signBody } from '../../src/provider/signature.js'
import {
  answerOf,
  CONFIG,
  configuredFolder,
  entitlementsOf,
  failureOf,
  MAY_ALL,
  run,
  serveHere,
} from '../world.js'

const SANDBOX = { environment: 'sandbox', secrets: ['whsec_sandbox_0123456789'] }
const CONFIGURED = { ...MAY_ALL, endpoints: { ...CONFIG.endpoints, test: SANDBOX } }

function bodyOf(n: number, environment: 'live' | 'sandbox' = 'sandbox'): string {
  return buildSampleEvent({
    type: 'payment.authorized',
    eventId: `evt_${n}`,
    createdAt: Date.now() - 60_000,
    environment,
    customerId: `cus_${n}`,
    productId: 'pro_1',
    paymentId: `pay_${n}`,
    subscriptionId: null,
    rail: 'card',
  }).body
}

/** A folder with this file, and a daemon that serves it; the words that send the file there. */
async function sending(file: string, content: string, options = '') {
  const folder = configuredFolder(CONFIGURED)
  const daemon = await serveHere(folder)
  writeFileSync(join(folder, file), content)
  return { folder, daemon, words: `send ${file} --url ${daemon.url} ${options}` }
}

describe('latchkey send', () => {
  it('signs one body on however many lines, and sends its exact bytes to the sandbox', async () => {
    const body = JSON.stringify(JSON.parse(bodyOf(1)), null, 2)
    const { folder, words } = await sending('body.json', `${body}\n`)
    expect(await run(folder, words)).toEqual({ code: 0, stdout: '1 line, 1 applied\n', stderr: '' })
    const stored = await run(folder, 'events body evt_1 --environment sandbox')
    expect(stored.stdout).toBe(body)
    const { headers } = await answerOf(folder, 'events show evt_1 --environment sandbox')
    expect(headers.event).toBe('payment.authorized')
    expect(headers.signature).toBe(signBody('whsec_sandbox_0123456789', headers.timestamp, Buffer.from(body)))
  })

  it('sends a body for each line, to a live endpoint if told so, and counts what became of them', async () => {
    const lines = [bodyOf(1, 'live'), '', bodyOf(2, 'live'), bodyOf(1, 'live')].join('\r\n')
    const { folder, daemon, words } = await sending('bodies.jsonl', lines, '--live')
    const counts = await answerOf(folder, words)
    expect(counts).toMatchObject({ lines: 3, applied: 2, duplicates: 1, refused: 0 })
    expect(await entitlementsOf(daemon, 'cus_2')).toMatchObject([{ productId: 'pro_1', active: true }])
  })

  it('sends the bodies of an export again, from standard input', async () => {
    const { folder, daemon, words } = await sending('bodies.jsonl', `${bodyOf(1)}\n${bodyOf(2)}\n`)
    await run(folder, words)
    await run(folder, 'events export --environment sandbox --output export.jsonl')
    const other = configuredFolder(CONFIGURED)
    const copy = await serveHere(other)
    const input = [readFileSync(join(folder, 'export.jsonl'))]
    const sent = await answerOf(other, `send - --url ${copy.url}`, { input })
    expect(sent).toMatchObject({ lines: 2, applied: 2 })
    await daemon.stop()
  })

  it('names the lines that cannot be sent, and sends all others', async () => {
    const { folder, words } = await sending('bodies.jsonl', ['{"id":', bodyOf(1), '[]'].join('\n'))
    expect(await run(folder, words)).toEqual({
      code: 1,
      stdout: '3 lines, 1 applied, 2 refused\n',
      stderr: [
        'error: 2 lines were refused; all other lines were read',
        '  line 1: line_invalid: is not JSON',
        '  line 3: line_invalid: is not a JSON object',
        '',
      ].join('\n'),
    })
  })

  it('skips the unsigned lines of an export, as an import does', async () => {
    const unsigned = ['manual', 'reading'].map((kind) => JSON.stringify({ kind, bodyBase64: '' }))
    const { folder, words } = await sending('export.jsonl', [bodyOf(1), ...unsigned].join('\n'))
    expect(await run(folder, words)).toEqual({
      code: 0,
      stdout:
        '3 lines, 1 applied, 2 skipped\n' +
        'skipped: unsigned lines (manual changes, and events whose bytes were removed); "latchkey import --with-manual" imports them\n',
      stderr: '',
    })
    expect(await answerOf(folder, words)).toMatchObject({ duplicates: 1, leftOut: 2, refused: 0 })
  })

  it('says where one faulty body on several lines is wrong, and sends nothing', async () => {
    const body = JSON.stringify(JSON.parse(bodyOf(1)), null, 2)
    const { folder, words } = await sending('body.json', `${body.slice(0, -1)},\n}\n`)
    const line = body.split('\n').length + 1
    expect(await run(folder, words)).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: body.json is neither one JSON body nor one JSON body on each line: not valid JSON at line ${line}, column 1\n`,
    })
    expect((await answerOf(folder, 'events list --environment sandbox')).items).toEqual([])
  })

  it('ends at the line that the daemon does not accept', async () => {
    const { folder, daemon, words } = await sending('bodies.jsonl', `${bodyOf(1)}\n${bodyOf(2)}\n`)
    const elsewhere = {
      ...CONFIGURED,
      endpoints: { test: { ...SANDBOX, secrets: ['whsec_another_0123456789'] } },
    }
    writeFileSync(join(folder, 'config.json'), JSON.stringify(elsewhere))
    const { code, error } = await failureOf(folder, words)
    expect({ code, error }).toMatchObject({
      code: 1,
      error: {
        code: 'signature_invalid',
        message: expect.stringMatching(/^line 1: the daemon answered 401: /),
      },
    })
    await daemon.stop()
    expect((await failureOf(folder, words)).error).toMatchObject({ code: 'daemon_unreachable' })
  })

  it('refuses a file that is not there', async () => {
    const { folder, daemon } = await sending('body.json', bodyOf(1))
    expect(await failureOf(folder, `send other.json --url ${daemon.url}`)).toMatchObject({
      code: 1,
      error: { code: 'input_failed' },
    })
  })
})
