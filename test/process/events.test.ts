import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { latchkey, runProgram } from '../setup/program.js'
import { CONFIG, configuredFolder, serve } from './served.js'

const ABOUT = ['--customer', 'cus_1', '--product', 'pro_1', '--payment', 'pay_1']

it('shows what is stored beside the running daemon, and exports it without it, byte for byte', async () => {
  const folder = configuredFolder(CONFIG)
  const daemon = await serve(folder)

  async function output(command: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runProgram(command, { folder })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }
  for (const type of ['payment.authorized', 'payment.refunded']) {
    await output(latchkey('trigger', type, ...ABOUT, '--live', '--url', daemon.url))
  }
  await output(latchkey('grant', 'cus_1', 'pro_1', '--reason', 'support case 17'))

  const listed = JSON.parse(await output(latchkey('events', 'list', '--json')))
  expect(listed).toMatchObject({
    hasMore: false,
    next: null,
    items: [{ type: 'manual.granted' }, { type: 'payment.refunded' }, { type: 'payment.authorized' }],
  })
  const [, , { id, bodySha256 }] = listed.items
  expect(await output(latchkey('events', 'show', id))).toMatch(/^payment\.authorized evt_\w+: applied\n/)

  daemon.signal('SIGTERM')
  expect((await daemon.exit).code).toBe(0)
  await output(latchkey('events', 'body', id, '--output', 'event.body'))
  const body = readFileSync(join(folder, 'event.body'))
  expect(createHash('sha256').update(body).digest('hex')).toBe(bodySha256)

  const exported = await output(latchkey('events', 'export'))
  const lines = exported
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines).toMatchObject([
    { endpoint: 'live', bodyBase64: body.toString('base64') },
    { endpoint: 'live' },
    { kind: 'manual', environment: 'live' },
  ])
})

it('ends quietly where nobody reads on', async () => {
  const folder = configuredFolder(CONFIG)
  const daemon = await serve(folder)
  // More than a pipe holds.
  const count = ['--count', '300', '--live', '--url', daemon.url]
  const sent = await runProgram(latchkey('trigger', 'payment.authorized', ...ABOUT, ...count), { folder })
  expect(sent.code).toBe(0)
  const [node = '', program = ''] = latchkey()
  const script = `"${node}" "${program}" events export | head -n 1`
  const { code, stdout, stderr } = await runProgram(['sh', '-c', script], { folder })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({ endpoint: 'live' })
})
