import { describe, expect, it } from 'vitest'
import { table } from '../../src/cli/text.js'
import { CONFIG, configuredFolder, run, serveHere } from '../world.js'

const GREEN = '\u001b[32mactive\u001b[39m'
const BAR = /\r[█░]{24} +\d+ % {2}/

/** A daemon that knows a customer with two products, and what runs a command beside it that is to end well. */
async function terminal() {
  const folder = configuredFolder()
  await serveHere(folder)
  const onTerminal = async (line: string, isTerminal = true, env: Readonly<Record<string, string>> = {}) => {
    const exit = await run(folder, line, { isTerminal, env })
    expect({ line, code: exit.code }).toEqual({ line, code: 0 })
    return exit
  }
  for (const product of ['pro_1', 'pro_long']) await onTerminal(`grant cus_1 ${product} --reason test`, false)
  return onTerminal
}

describe('on a terminal', () => {
  it('words that say how something is are coloured, and columns are aligned', async () => {
    const told = await terminal()
    const { stdout } = await told('check cus_1')
    expect(stdout.split('\n').map((line) => line.slice(0, 26))).toEqual([
      `pro_1     ${GREEN}`,
      `pro_long  ${GREEN}`,
      '',
    ])
    const plain = (await told('check cus_1', false)).stdout
    expect(plain).toMatch(/^pro_1 {5}active {2}since .*\npro_long {2}active {2}since .*\n$/)
    expect((await told('check cus_1', true, { NO_COLOR: '1' })).stdout).toBe(plain)
    expect((await told('doctor')).stdout).toContain('\u001b[32mok\u001b[39m    schema              current\n')
  })

  it('JSON is never coloured', async () => {
    const told = await terminal()
    expect((await told('check cus_1 --json')).stdout).toMatch(/^\{"customerId":"cus_1",/)
  })

  it('long work shows a bar, which is gone in the end, and in a pipe nothing', async () => {
    const told = await terminal()
    const long = ['rebuild', 'rebuild --verify', 'policy apply', 'policy diff', 'replay --dry-run']
    for (const line of [...long, 'backup copy.db', 'events export --output events.jsonl']) {
      const { stderr } = await told(line)
      expect([line, stderr.startsWith('\r'), stderr.endsWith('\r\u001b[K')]).toEqual([line, true, true])
      const again = line.replace('copy.db', 'copy.db --force').replace('events.jsonl', 'again.jsonl')
      expect((await told(again, false)).stderr).not.toContain('\r')
    }
    expect((await told('backup copy.db --force')).stderr).toMatch(BAR)
    expect((await told('import events.jsonl --with-manual')).stderr).toMatch(BAR)
    expect((await told('erase cus_1 --yes')).stderr).toBe('\rerasing cus_1 …\r\u001b[K')
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
  const url = `sqlite:${'x'.repeat(100)}/latchkey.db`
  const { code, stderr } = await run(configuredFolder({ ...CONFIG, database: { url } }), 'status')
  expect([code, stderr]).toEqual([1, expect.stringContaining('name the daemon with --url')])
})
