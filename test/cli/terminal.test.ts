import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createCommands, runCli } from '../../src/cli/program.js'
import { table } from '../../src/cli/text.js'
import { endpoint, writeConfig } from '../config/config-file.js'
import { temporaryFolder } from '../world.js'

const COMMANDS = createCommands({ openInput: () => Readable.from([]) })
const GREEN = '\u001b[32mactive\u001b[39m'
const BAR = /\r[█░]{24} +\d+ % {2}/

/** What runs a command beside a config, on a terminal or not; the command is to end well. */
function runner(told: object = {}) {
  const folder = temporaryFolder()
  const endpoints = { live: endpoint('live', 'whsec_0123456789abcdef') }
  const config = writeConfig({ endpoints, ...told }, folder)
  return async (
    line: string,
    isTerminal = true,
    env: Readonly<Record<string, string>> = {},
    exitCode = 0,
  ) => {
    let [out, err] = ['', '']
    const context = {
      env,
      folder,
      now: Date.now,
      isTerminal,
      out: (text: string | Uint8Array) => {
        out += text
      },
      err: (text: string) => {
        err += text
      },
    }
    expect(await runCli([...line.split(' '), '--config', config], context, COMMANDS)).toBe(exitCode)
    return { out, err }
  }
}

/** The same, and the database knows a customer with two products. */
async function terminal() {
  const run = runner()
  for (const product of ['pro_1', 'pro_long']) await run(`grant cus_1 ${product} --reason test`, false)
  return run
}

describe('on a terminal', () => {
  it('words that say how something is are coloured, and columns are aligned', async () => {
    const run = await terminal()
    const { out } = await run('check cus_1')
    expect(out.split('\n').map((line) => line.slice(0, 26))).toEqual([
      `pro_1     ${GREEN}`,
      `pro_long  ${GREEN}`,
      '',
    ])
    const plain = (await run('check cus_1', false)).out
    expect(plain).toMatch(/^pro_1 {5}active {2}since .*\npro_long {2}active {2}since .*\n$/)
    expect((await run('check cus_1', true, { NO_COLOR: '1' })).out).toBe(plain)
    expect((await run('doctor')).out).toContain('\u001b[32mok\u001b[39m    schema              current\n')
  })

  it('JSON is never coloured', async () => {
    const run = await terminal()
    expect((await run('check cus_1 --json')).out).toMatch(/^\{"customerId":"cus_1",/)
  })

  it('long work shows a bar, which is gone in the end, and in a pipe nothing', async () => {
    const run = await terminal()
    const long = ['rebuild', 'rebuild --verify', 'policy apply', 'policy diff', 'replay --dry-run']
    for (const line of [...long, 'backup copy.db', 'events export --output events.jsonl']) {
      const { err } = await run(line)
      expect([line, err.startsWith('\r'), err.endsWith('\r\u001b[K')]).toEqual([line, true, true])
      const again = line.replace('copy.db', 'copy.db --force').replace('events.jsonl', 'again.jsonl')
      expect((await run(again, false)).err).not.toContain('\r')
    }
    expect((await run('backup copy.db --force')).err).toMatch(BAR)
    expect((await run('import events.jsonl --with-manual')).err).toMatch(BAR)
    expect((await run('erase cus_1 --yes')).err).toBe('\rerasing cus_1 …\r\u001b[K')
  })
})

it('a table leaves out a column in which nothing is', () => {
  expect(
    table([
      ['a', '', 'b'],
      ['long', '', ''],
    ]),
  ).toBe('a     b\nlong\n')
})

it('a daemon whose socket would have too long a path is to be named by --url', async () => {
  const run = runner({ database: { url: `sqlite:${'x'.repeat(100)}/latchkey.db` } })
  expect((await run('status', false, {}, 1)).err).toContain('name the daemon with --url')
})
